/** `truncated: continue`: an answer cut at its cap goes on by ids, exactly where it stopped, and becomes one turn. */
import { expect, onTestFinished, test } from 'vitest';
import type { TrainingRecord } from '../../src/shard/record.ts';
import { proves } from '../proves.ts';
import type { Project } from '../support/cli.ts';
import { freePort, type LookalikeProject, lookalikeProject } from '../support/lookalike-project.ts';
import { readExport } from '../support/read-export.mjs';
import { promptStates, query, readShardLines } from '../support/run-folder.ts';
import { startEmbedded } from '../support/start-embedded.ts';
import { tinyProject } from '../support/tiny-project.ts';

const CAP = 16;
const LIMIT = 8; // the default
const recordsOf = (project: Project, partition = 'B1', run = 'r'): TrainingRecord[] =>
  readShardLines(project.path(`runs/${run}`), partition).sort((a, b) => (a.id < b.id ? -1 : 1));
const turnsOf = (records: readonly TrainingRecord[]) => records.flatMap(({ turns }) => turns);
/** A continued answer against the same in one request: all but the place of the joint, which only the cache sees. */
const said = (records: readonly TrainingRecord[]) =>
  records.map(({ id, turns }) => ({
    id,
    turns: turns.map(({ usage, server: _, ...turn }) => ({ ...turn, usage: [usage.prompt, usage.completion] })),
  }));

async function expectSound(project: Project, run = 'run.yaml'): Promise<void> {
  const checked = await project.aerie(['check', run, '--json']);
  const { findings } = checked.json().data as { findings: { code: string; severity: string }[] };
  expect(findings.filter(({ severity }) => severity === 'error')).toEqual([]);
  expect(checked.code, checked.stdout).toBe(0);
}

for (const engine of ['embedded', 'vllm', 'sglang']) {
  const name = `greedy on the embedded engine as ${engine}: pieces of 16 tokens are the answer that one request gives`;
  proves('answer:continued-is-whole', name, async () => {
    const attached = engine === 'embedded' ? undefined : await startEmbedded(['--context', '1024', '--sequences', '4']);
    if (attached !== undefined) onTestFinished(attached.stop);
    const servers = attached === undefined ? {} : { model: 'tiny', servers: [{ engine, attach: attached.baseUrl }] };
    const partitions = (over: object) => [{ name: 'B1', from: 'b.jsonl', ...over }];
    const sampling = { temperature: 0, seed: 11 };
    const project = await tinyProject({
      ...servers,
      sampling: { ...sampling, 'max-tokens': CAP },
      partitions: partitions({ truncated: 'continue' }),
    });
    const run = JSON.parse(project.read('run.yaml')) as object;
    const whole = { run: 'one', sampling: { ...sampling, 'max-tokens': CAP * (1 + LIMIT) }, partitions: partitions({}) };
    project.writeRun('one.yaml', { ...run, ...whole });
    for (const file of ['run.yaml', 'one.yaml']) {
      const result = await project.aerie(['run', file]);
      expect(result.code, result.stderr).toBe(0);
    }
    const [continued, single] = [recordsOf(project), recordsOf(project, 'B1', 'one')];
    expect(said(continued)).toEqual(said(single).map(({ id, turns }, at) => ({ id, turns: withSeeds(turns, continued[at]) })));
    expect(turnsOf(continued).some(({ outputIds }) => outputIds.length > 2 * CAP)).toBe(true);
    for (const { flags, turns } of continued)
      expect(flags.includes('continued')).toBe(turns.some(({ outputIds }) => outputIds.length > CAP));
    await expectSound(project);
    const exported = await project.aerie(['export', 'run.yaml', '--for', 'speculators']);
    expect(exported.code, exported.stderr).toBe(0);
    const rows = readExport(project.path('runs/r/export/speculators'));
    expect([rows.tokenRows.length > 0, rows.findings]).toEqual([true, []]);

    // Each request has its row; what is spent counts each id once.
    const spent = turnsOf(continued).reduce((sum, { outputIds }) => sum + outputIds.length, 0);
    const folder = project.path('runs/r');
    expect(query(folder, 'SELECT sum(tokens) AS tokens, count(*) AS n FROM attempts')).toEqual([
      { tokens: spent, n: turnsOf(continued).reduce((sum, { outputIds }) => sum + Math.ceil(outputIds.length / CAP), 0) },
    ]);
    expect(query(folder, 'SELECT spent_tokens AS spent FROM partitions')).toEqual([{ spent }]);
  });
}

/** Seeds are derived from the same facts. */
function withSeeds<T extends { readonly seed: number }>(turns: readonly T[], record: TrainingRecord | undefined): T[] {
  return turns.map((turn, at) => ({ ...turn, seed: record?.turns[at]?.seed ?? -1 }));
}

interface Continued {
  readonly engine: string;
  readonly scenario?: object;
  readonly over?: object;
  readonly sampling?: object;
  readonly prompts?: number;
}

async function continuedProject(asked: Continued): Promise<LookalikeProject> {
  const { engine, scenario = {}, over = {}, sampling = {}, prompts = 3 } = asked;
  const project = await lookalikeProject({ prompts, scenario });
  project.change({
    servers: [{ engine, attach: `http://127.0.0.1:${project.port}` }],
    sampling: { 'max-tokens': CAP, seed: 7, ...sampling },
    partitions: [{ name: 'B1', from: 'prompts.jsonl', truncated: 'continue', ...over }],
  });
  return project;
}

const received = (project: LookalikeProject) => project.journal().filter((line) => line.event === 'received');

test.each([
  ['vllm', '/v1/completions'],
  ['sglang', '/generate'],
])('%s is asked on at %s with the ids so far, and each piece has a seed of its own', async (engine, path) => {
  const scenario = { answerTokens: { kind: 'fixed', tokens: 50 }, version: engine === 'vllm' ? '0.11.0' : '0.5.18' };
  const project = await continuedProject({ engine, scenario });
  project.writeRows('prompts.jsonl', [{ turns: ['one?', 'two?'] }, { prompt: 'three?' }]);
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(0);
  expect(result.stderr).toContain('an answer cut there is continued, up to 8 times');
  const records = recordsOf(project);
  for (const { flags, turns, exact } of records) {
    expect([flags, exact]).toEqual([['continued'], true]);
    for (const { outputIds, finish, endsWithStopId, usage, continues, promptIds } of turns) {
      expect([outputIds.length, finish, endsWithStopId]).toEqual([50, 'stop', true]);
      expect([usage.completion, usage.prompt]).toEqual([50, continues + promptIds.length]);
    }
    expect(turns.slice(1).every(({ continues }) => continues > 0)).toBe(true);
  }
  const lines = received(project);
  expect(lines.filter((line) => line.path === path).length).toBe(3 * 3); // 50 tokens are four pieces of 16
  expect(new Set(lines.map(({ seed }) => seed)).size).toBe(lines.length);
  const [{ turns: [first] = [] } = {}] = records.filter(({ turns }) => turns.length === 1);
  const inputs = lines.filter((line) => line.path === path).map((line) => JSON.stringify(line.input));
  for (const piece of [1, 2, 3])
    expect(inputs).toContain(JSON.stringify([...(first?.promptIds ?? []), ...(first?.outputIds ?? []).slice(0, piece * CAP)]));
  await expectSound(project);
});

test('an answer that no longer fits, and one that never ends, is kept as truncated', async () => {
  const scenario = { answerTokens: { kind: 'fixed', tokens: 5000 } };
  const bounded = await continuedProject({ engine: 'vllm', scenario, over: { continuations: 2 } });
  expect((await bounded.aerie(['run', 'run.yaml'])).code).toBe(0);
  for (const { flags, turns } of recordsOf(bounded)) {
    expect([flags, turns.map(({ outputIds, finish }) => [outputIds.length, finish])]).toEqual([
      ['truncated', 'continued'],
      [[3 * CAP, 'length']],
    ]);
  }
  await expectSound(bounded);
  const full = await lookalikeProject({ prompts: 1, scenario, args: ['--max-model-len', '100'] });
  full.change({
    sampling: { 'max-tokens': 32, seed: 7 },
    partitions: [{ name: 'B1', from: 'prompts.jsonl', truncated: 'continue' }],
  });
  expect((await full.aerie(['run', 'run.yaml'])).code).toBe(0);
  const [{ turns: [turn] = [], flags } = {}] = recordsOf(full);
  expect((turn?.promptIds.length ?? 0) + (turn?.outputIds.length ?? 0)).toBe(100);
  expect(flags).toEqual(['truncated', 'continued']);
});

test('a server that will not go on leaves the answer that there is; one that fails is asked again', async () => {
  const scenario = {
    answerTokens: { kind: 'fixed', tokens: 40 },
    faults: [
      { when: { request: 2 }, do: 'status', status: 400 },
      { when: { request: 4 }, do: 'wrong-count' },
      { when: { request: 5 }, do: 'reset' },
    ],
  };
  const project = await continuedProject({ engine: 'vllm', scenario, prompts: 2 });
  project.change({
    ...{ sampling: { 'max-tokens': CAP, seed: 7 }, 'in-flight': 1 },
    partitions: [{ name: 'B1', from: 'prompts.jsonl', truncated: 'continue' }],
  });
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(0);
  const lengths = recordsOf(project).map(({ flags, turns }) => [turns[0]?.outputIds.length, ...flags]);
  expect(lengths.sort()).toEqual([
    [CAP, 'truncated'],
    [40, 'continued'],
  ]);
  await expectSound(project);
});

test('a worker that is killed between two pieces asks the turn again, and the answer is the same', async () => {
  const answers = { answerTokens: { kind: 'fixed', tokens: 70 } };
  const hang = { when: { request: 4 }, do: 'hang' };
  const project = await continuedProject({ engine: 'sglang', scenario: { ...answers, faults: [hang] }, prompts: 2 });
  const worker = project.start(['run', 'run.yaml']);
  await expect.poll(() => received(project).length, { timeout: 60_000, interval: 20 }).toBeGreaterThanOrEqual(4);
  worker.kill('SIGKILL');
  await worker.ended;
  await project.clearFaults();
  expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
  const whole = await continuedProject({ engine: 'sglang', scenario: answers, prompts: 2 });
  expect((await whole.aerie(['run', 'run.yaml'])).code).toBe(0);
  expect(said(recordsOf(project))).toEqual(said(recordsOf(whole)));
  expect(promptStates(project.runFolder)).toEqual({ done: 2 });
});

test('Ctrl-C waits for the last piece of an answer that has begun', async () => {
  const scenario = { answerTokens: { kind: 'fixed', tokens: 70 }, latency: { kind: 'fixed', ms: 300 } };
  const project = await continuedProject({ engine: 'vllm', scenario, prompts: 3 });
  project.change({
    ...{ sampling: { 'max-tokens': CAP, seed: 7 }, 'in-flight': 1 },
    partitions: [{ name: 'B1', from: 'prompts.jsonl', truncated: 'continue' }],
  });
  const worker = project.start(['run', 'run.yaml']);
  await expect.poll(() => received(project).length, { timeout: 60_000, interval: 20 }).toBeGreaterThanOrEqual(2);
  worker.kill('SIGINT');
  expect((await worker.ended).code).toBe(130);
  const lengths = turnsOf(recordsOf(project)).map(({ outputIds, finish }) => [outputIds.length, finish]);
  expect(lengths).toEqual([[70, 'stop']]);
});

test.each([
  ['vllm', 9],
  ['sglang', 20], // inside the reasoning, and behind it
  ['vllm', 40],
])('%s splits reasoning, cap %i: a continued answer has the reasoning and the text of a whole one', async (engine, cap) => {
  const text = '<think>\nEs sind zwei Flüsse, 漢江.</think>\n\nZwei: 漢江 und Elbe, hübsch…';
  const scenario = { splitsReasoning: true, faults: [{ do: 'say', text }], version: engine === 'vllm' ? '0.11.0' : '0.5.18' };
  const project = await continuedProject({ engine, scenario, sampling: { 'max-tokens': cap }, over: { continuations: 40 } });
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(0);
  for (const { turns, flags } of recordsOf(project)) {
    expect(flags).toEqual(['continued']);
    expect(turns.map(({ reasoning, text: answer, finish }) => [reasoning, answer, finish])).toEqual([
      ['\nEs sind zwei Flüsse, 漢江.', '\n\nZwei: 漢江 und Elbe, hübsch…', 'stop'],
    ]);
    expect(turns[0]?.outputIds.length).toBe(Buffer.byteLength(text) + 1);
  }
  await expectSound(project);
});

test('a character that lies across two pieces is whole in the text', async () => {
  const text = '漢字は三つのバイト, été aussi. '.repeat(3).trim();
  const project = await continuedProject({
    engine: 'vllm',
    scenario: { faults: [{ do: 'say', text }] },
    over: { continuations: 60 },
    sampling: { 'max-tokens': 5 },
  });
  expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
  for (const { turns, flags } of recordsOf(project)) expect([turns[0]?.text, flags]).toEqual([text, ['continued']]);
  await expectSound(project);
});

test('an endpoint without ids is refused with the place in the file, and an engine too old before it is asked', async () => {
  const project = await lookalikeProject({ prompts: 1, scenario: { version: '0.10.1', ids: 'none' } });
  const partitions = [{ name: 'B1', from: 'prompts.jsonl', truncated: 'continue' }];
  project.write(
    'plain.yaml',
    `run: plain\nmodel: m\nservers:\n  - { engine: openai, attach: "http://127.0.0.1:${await freePort()}" }\n` +
      'partitions:\n  - name: B1\n    from: prompts.jsonl\n    truncated: continue\n',
  );
  const refused = await project.aerie(['run', 'plain.yaml']);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toMatch(
    /plain\.yaml:8:16 {2}partitions\[0\]\.truncated {2}is continue, which needs token ids, and servers\[0\]\.engine is openai/,
  );
  project.change({ partitions });
  const old = await project.aerie(['run', 'run.yaml']);
  expect(old.code).toBe(2);
  expect(old.stderr).toMatch(/vllm-0 gives no token ids, and partition B1 has truncated: continue/);
  expect(received(project)).toEqual([]);
});

test('with tools an answer is not continued: its calls are parsed by the chat endpoint alone', async () => {
  const project = await continuedProject({ engine: 'vllm', scenario: { answerTokens: { kind: 'fixed', tokens: 50 } } });
  const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }];
  project.writeRows('prompts.jsonl', [{ tools, messages: [{ role: 'user', content: 'look!' }] }]);
  expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
  expect(recordsOf(project).map(({ flags, turns }) => [flags, turns[0]?.outputIds.length])).toEqual([[['truncated'], CAP]]);
});
