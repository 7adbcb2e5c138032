/**
 * A server that gives no token ids with a chat (SGLang 0.5.9), and a model whose tokenizer is Python (as Kimi-K2.5's): exact
 * records where the prompt can be rendered here as the server renders it, text with the reason where it cannot.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import type { TrainingRecord } from '../../src/shard/record.ts';
import { openDoor } from '../support/cli-door.ts';
import { startHubServer } from '../support/hub-server.ts';
import { expectEachOnce, type LookalikeProject, lookalikeProject } from '../support/lookalike-project.ts';
import { readShardLines } from '../support/run-folder.ts';

const door = openDoor();

/** The lookalike's own template, with the branch that only Python code fills, as Kimi's has it. */
const TEMPLATE = `{%- if tools -%}<|system|>
# Tools
{% if tools_ts_str %}{{ tools_ts_str }}{% else %}{{ tools | tojson }}{% endif %}<|end|>{%- endif -%}
{%- for m in messages -%}<|{{ m.role }}|>
{{ m.content }}<|end|>{%- endfor -%}{%- if add_generation_prompt -%}<|assistant|>
{% endif -%}`;
const CONFIG = JSON.stringify({ auto_map: { AutoTokenizer: ['tokenization_x.TikTokenTokenizer', null] }, bos_token: '[BOS]' });
const SCENARIO = { version: '0.5.9', ids: 'none', countsMessages: false };
const TOOL = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } };

const recordsOf = (project: LookalikeProject, partition = 'B1'): TrainingRecord[] =>
  readShardLines(project.runFolder, partition).sort((a, b) => (a.id < b.id ? -1 : 1));

interface Wanted {
  readonly prompts: number;
  readonly scenario?: object;
  readonly run?: object;
  readonly template?: string;
}

/** A run on SGLang 0.5.9, with the model's folder beside the run file. */
async function projectWith({ prompts, scenario = {}, run = {}, template = TEMPLATE }: Wanted): Promise<LookalikeProject> {
  const project = door.through(await lookalikeProject({ prompts, scenario: { ...SCENARIO, ...scenario } }));
  mkdirSync(project.path('model'));
  writeFileSync(project.path('model/tokenizer_config.json'), CONFIG);
  writeFileSync(project.path('model/chat_template.jinja'), template);
  project.change({ model: './model', servers: [{ engine: 'sglang', attach: `http://127.0.0.1:${project.port}` }], ...run });
  return project;
}

async function runIt(project: LookalikeProject, more: readonly string[] = []): Promise<string> {
  const result = await project.aerie(['run', 'run.yaml', ...more]);
  expect(result.code, result.stderr).toBe(0);
  return result.stderr;
}

test('exact: the ids of each record are ids that its server was given and gave, and the check finds nothing wrong', async () => {
  const project = await projectWith({ prompts: 12 });
  expect(await runIt(project)).not.toContain('records will NOT be exact');
  expectEachOnce(project, 12);
  const answered = project.journal().filter((line) => line.event === 'answered');
  for (const { exact, inexactBecause, turns } of recordsOf(project)) {
    expect([exact, inexactBecause]).toEqual([true, '']);
    for (const { promptIds, usage } of turns) expect(promptIds.length).toBe(usage.prompt);
  }
  expect(answered.filter(({ path }) => path === '/generate')).toHaveLength(12);
  // Fewer than 32 prompts: each was proved.
  expect(answered.filter(({ path }) => path === '/v1/chat/completions')).toHaveLength(12);
  const checked = (await project.aerie(['check', 'run.yaml', '--json'])).json().data;
  expect(checked.findings.filter(({ severity }: { severity: string }) => severity === 'error')).toEqual([]);
});

test('a preview says yes or no, of prompts without tools and with them, before anything is asked', async () => {
  const locked = { faults: [{ do: 'status', status: 401, when: { fromRequest: 1 } }] };
  const project = await projectWith({ prompts: 2, scenario: locked });
  const failed = await project.aerie(['preview', 'run.yaml']);
  expect(failed.code).toBe(4);
  expect(failed.stderr).toMatch(/records with tools will NOT be exact: .*Python code/);
  expect(failed.stderr).toMatch(/: records will be exact, by the model's own chat template/);
  await project.clearFaults();
  const { stdout, code } = await project.aerie(['preview', 'run.yaml']);
  expect(code).toBe(0);
  expect(stdout).toMatch(
    / exact, by the model's own chat template[\s\S]* NOT exact with tools: .*Python code[\s\S]*^exact {5}yes/m,
  );
  const { expected, exact } = (await project.aerie(['preview', 'run.yaml', '--json'])).json().data;
  expect([expected, exact]).toMatchObject([
    [{ exact: true, because: '', becauseWithTools: expect.stringContaining('Python') as string }],
    true,
  ]);
});

test('with tools a prompt is asked as a chat: its record has the reason, the others are exact', async () => {
  const project = await projectWith({ prompts: 0 });
  const rows = [{ prompt: 'one' }, { messages: [{ role: 'user', content: 'two' }], tools: [TOOL] }, { prompt: 'three' }];
  project.writeRows('prompts.jsonl', rows);
  await runIt(project);
  const records = recordsOf(project);
  expect(records.filter(({ tools }) => tools.length === 0).map(({ exact }) => exact)).toEqual([true, true]);
  expect(records.find(({ tools }) => tools.length > 0)).toMatchObject({
    exact: false,
    inexactBecause: expect.stringContaining('the tokenizer of its model is Python code') as string,
    turns: [{ promptIds: [], outputIds: [] }],
  });
});

test('several turns, and answers that are cut and go on: all by ids', async () => {
  const run = {
    sampling: { 'max-tokens': 16, seed: 7 },
    partitions: [{ name: 'B1', from: 'prompts.jsonl', truncated: 'continue' }],
  };
  const project = await projectWith({ prompts: 0, run, scenario: { answerTokens: { kind: 'fixed', tokens: 40 } } });
  const user = (content: string) => ({ role: 'user', content });
  project.writeRows('prompts.jsonl', [{ messages: [user('one'), { role: 'assistant', content: 'given' }, user('more')] }]);
  await runIt(project);
  const [record] = recordsOf(project);
  expect(record).toMatchObject({ exact: true, flags: ['continued'] });
  expect(record?.turns.map(({ outputIds, finish }) => [outputIds.length, finish])).toEqual([
    [40, 'stop'],
    [40, 'stop'],
  ]);
  expect(record?.turns[1]?.continues).toBeGreaterThan(0);
});

test('a template that is not the server’s is found out, and the run is text with both numbers', async () => {
  const project = await projectWith({ prompts: 4, template: `x${TEMPLATE}` });
  await runIt(project);
  for (const { exact, inexactBecause, turns } of recordsOf(project)) {
    expect([exact, turns[0]?.outputIds]).toEqual([false, []]);
    expect(inexactBecause).toMatch(
      /renders a prompt otherwise than the chat template that is at hand: \d+ tokens there, \d+ here/,
    );
  }
});

test('the template is kept with the run: it goes on without the model’s folder; from the hub it is fetched once', async () => {
  const files = { 'tokenizer_config.json': Buffer.from(CONFIG), 'chat_template.jinja': Buffer.from(TEMPLATE) };
  const hub = await startHubServer({ 'acme/tiny': { commit: 'main', files: { main: files } } });
  onTestFinished(() => hub.close());
  const project = await projectWith({ prompts: 2, run: { model: 'acme/tiny' } });
  rmSync(project.path('model'), { recursive: true });
  const env = { HF_ENDPOINT: hub.url };
  const first = await project.aerie(['run', 'run.yaml'], { env });
  expect(first.code, first.stderr).toBe(0);
  await hub.close();
  project.change({
    model: 'acme/tiny',
    servers: [{ engine: 'sglang', attach: `http://127.0.0.1:${project.port}` }],
    partitions: [
      { name: 'B1', from: 'prompts.jsonl' },
      { name: 'B2', from: 'more.jsonl' },
    ],
  });
  project.writeRows('more.jsonl', [{ prompt: 'another' }]);
  const second = await project.aerie(['run', 'run.yaml'], { env });
  expect(second.code, second.stderr).toBe(0);
  expect([...recordsOf(project), ...recordsOf(project, 'B2')].map(({ exact }) => exact)).toEqual([true, true, true]);
});

test('no template anywhere: every place that was looked at is named, and the run is text', async () => {
  const project = await projectWith({ prompts: 1, run: { model: './nowhere' } });
  expect(await runIt(project)).toMatch(/will NOT be exact: .*not at hand \(.*tokenizer: neither .*; .*nowhere: neither /);
  expect(recordsOf(project)).toMatchObject([{ exact: false, inexactBecause: expect.stringContaining('not at hand') as string }]);
});
