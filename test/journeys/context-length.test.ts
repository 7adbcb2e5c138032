/** Prompts that are longer than the context of their server: named, counted, asked again where there is room. */
import { expect, onTestFinished, test } from 'vitest';
import { proves } from '../proves.ts';
import { openDoor } from '../support/cli-door.ts';
import { startLookalike } from '../support/lookalike-bench.ts';
import { type LookalikeProject, lookalikeProject } from '../support/lookalike-project.ts';
import { readExport } from '../support/read-export.mjs';
import { promptStates, query, readShardLines } from '../support/run-folder.ts';
import { startEmbedded } from '../support/start-embedded.ts';

const door = openDoor();

const CONTEXT = 400;
const ANSWER = 64;
/** The lookalike has a token for each byte, and five for a prompt of one message. */
const fills = (tokens: number, letter = 'x') => letter.repeat(tokens - 5);
const ROWS = [
  { prompt: fills(CONTEXT - ANSWER - 1) }, // with a token to spare, which SGLang wants
  { prompt: fills(CONTEXT - ANSWER + 2) },
  { prompt: fills(CONTEXT + 6) }, // more bytes than the context has tokens: counted before it is sent, where that can be
  { prompt: '漢'.repeat(CONTEXT / 2) }, // fewer characters than the context has tokens, and more bytes
  { turns: ['hi', fills(CONTEXT - ANSWER - 20, 'y'), 'never asked'] },
];

async function shortProject(scenario: object, engine = 'vllm', over: object = {}): Promise<LookalikeProject> {
  const project = door.through(
    await lookalikeProject({
      prompts: 0,
      scenario: { answerTokens: { kind: 'fixed', tokens: 40 }, ...scenario },
      args: ['--max-model-len', String(CONTEXT)],
    }),
  );
  project.writeRows('prompts.jsonl', ROWS);
  project.change({
    servers: [{ engine, attach: `http://127.0.0.1:${project.port}` }],
    sampling: { 'max-tokens': ANSWER, seed: 7 },
    ...over,
  });
  return project;
}

const statusOf = async (project: LookalikeProject) => (await project.aerie(['status', 'run.yaml', '--json'])).json().data;
const longestSent = (project: LookalikeProject) =>
  Math.max(
    ...project
      .journal()
      .flatMap((line) => (line.event === 'received' ? [Buffer.byteLength(JSON.stringify(line.input ?? ''))] : [0])),
  );

const TOLD = { 'longer-than-context': 2, 'no-room-for-answer': 1 };
proves('prompt:too-long-is-named', 'of every engine, in its own words and at its own bounds', async () => {
  for (const [engine, scenario, because] of [
    ['vllm', { refusals: 'vllm-older' }, TOLD],
    ['vllm', { refusals: 'vllm' }, TOLD],
    ['vllm', { refusals: 'vllm-newer' }, TOLD],
    // Nobody counts, and the server says no more than what would have fitted.
    ['vllm', { refusals: 'vllm-newer', countsMessages: false }, { 'no-room-for-answer': 3 }],
    ['sglang', { refusals: 'sglang', version: '0.5.18' }, TOLD],
    ['openai', { refusals: 'openai', ids: 'none' }, { 'longer-than-context': 3 }],
    ['embedded', { refusals: 'vllm-older' }, TOLD],
  ] as const) {
    const project = await shortProject(scenario, engine);
    const result = await project.aerie(['run', 'run.yaml']);
    expect(result.code, `${engine}\n${result.stderr}`).toBe(0);
    const { partitions, setAsides } = await statusOf(project);
    expect(partitions[0]).toMatchObject({ done: 2, aside: 3, setAsideBecause: because });
    for (const { reason } of setAsides) expect(because).toHaveProperty(reason);
    const reasons = Object.entries(because);
    for (const [reason, count] of reasons) expect(result.stdout).toContain(`set aside  B1  ${count} × ${reason}`);
    // The finished turn of the conversation that outgrew the context is a record of its own.
    const records = readShardLines(project.runFolder, 'B1');
    expect(records.map(({ turns, flags }) => [turns.length, flags.includes('context-full')]).sort()).toEqual([
      [1, false],
      [1, true],
    ]);
    const counted = engine !== 'sglang' && engine !== 'openai' && !('countsMessages' in scenario);
    expect(longestSent(project) > CONTEXT + 60, `${engine} ${JSON.stringify(scenario)}`).toBe(!counted);
  }
});

test('status says in numbers what is too long, and what to type', async () => {
  const project = await shortProject({});
  expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
  const { stdout } = await project.aerie(['status', 'run.yaml']);
  expect(stdout).toMatch(
    /2 × longer-than-context {3}The prompt fills the context[^\n]*\n {11}start the server with a longer context/,
  );
  expect(stdout).toMatch(/1 × no-room-for-answer[^\n]*\n[^\n]*lower max-tokens, then: aerie run \S+ --amend --retry-failed/);
  expect(stdout).toContain('longer-than-context: 406 tokens of prompt in a context of 400');
  expect(stdout).toContain(
    'no-room-for-answer: 338 tokens of prompt and max-tokens 64 in a context of 400; max-tokens 61 has room; HTTP 400',
  );
});

proves(
  'prompt:ended-can-be-asked-again',
  'with a longer context all of them are answered, and the short record is made whole',
  async () => {
    const project = await shortProject({});
    expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
    const checked = (await project.aerie(['check', 'run.yaml', '--json'])).json().data;
    expect(checked.findings).toContainEqual(expect.objectContaining({ code: 'context-full', severity: 'warning', count: 1 }));
    expect(checked.findings.map(({ severity }: { severity: string }) => severity)).not.toContain('error');
    expect((await project.aerie(['export', 'run.yaml', '--for', 'specforge'])).code).toBe(0);
    const exported = readExport(project.path('runs/r/export/specforge'));
    expect([exported.conversationRows.length, exported.findings]).toEqual([2, []]);

    const roomy = await startLookalike({ scenario: { answerTokens: { kind: 'fixed', tokens: 40 } } });
    project.change({ servers: [{ engine: 'vllm', attach: roomy.engine.baseUrl }], sampling: { 'max-tokens': ANSWER, seed: 7 } });
    const again = await project.aerie(['run', 'run.yaml', '--retry-failed', '--redo', 'context-full']);
    expect(again.code, again.stderr).toBe(0);
    expect(promptStates(project.runFolder)).toEqual({ done: 5 });
    const live = query(project.runFolder, `SELECT turns FROM records WHERE state = 'live' ORDER BY turns`);
    expect(live.map(({ turns }) => turns)).toEqual([1, 1, 1, 1, 3]);
    expect((await project.aerie(['check', 'run.yaml'])).stdout).not.toContain('context-full');
  },
);

test('a new attempt that outgrows the context leaves the record there was', async () => {
  const project = await shortProject({}, 'vllm');
  project.writeRows('prompts.jsonl', [{ turns: ['hi', 'and?', 'more'] }]);
  expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
  const short = await startLookalike({
    args: ['--max-model-len', '120'],
    scenario: { answerTokens: { kind: 'fixed', tokens: 40 } },
  });
  project.change({ servers: [{ engine: 'vllm', attach: short.engine.baseUrl }], sampling: { 'max-tokens': ANSWER, seed: 7 } });
  const [{ id } = { id: '' }] = readShardLines(project.runFolder, 'B1');
  const again = await project.aerie(['run', 'run.yaml', '--redo', id]);
  expect(again.code, again.stderr).toBe(0);
  expect(again.stderr).toMatch(/its record stays, the new attempt came to nothing: .*: .*in a context of 120/);
  expect(query(project.runFolder, 'SELECT turns, state FROM records')).toEqual([{ turns: 3, state: 'live' }]);
});

test('of several servers, the one with the longer context takes what has no room elsewhere', async () => {
  const project = await shortProject({});
  const roomy = await startLookalike({ scenario: { answerTokens: { kind: 'fixed', tokens: 40 } } });
  project.change({
    servers: [
      { engine: 'vllm', name: 'short', attach: `http://127.0.0.1:${project.port}` },
      { engine: 'sglang', name: 'roomy', attach: roomy.engine.baseUrl },
    ],
    sampling: { 'max-tokens': ANSWER, seed: 7 },
    'in-flight': 1,
  });
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(0);
  expect(promptStates(project.runFolder)).toEqual({ done: 5 });
  const servers = readShardLines(project.runFolder, 'B1').flatMap(({ turns }) => turns.map(({ server }) => server));
  expect(servers).toContain('roomy');
});

test('--strict stops at the first prompt that is too long, and blames none', async () => {
  const project = await shortProject({}, 'vllm', { 'in-flight': 1 });
  const result = await project.aerie(['run', 'run.yaml', '--strict']);
  expect(result.code, result.stderr).toBe(2);
  expect(result.stderr).toMatch(/source\.row-refused[\s\S]*B1\/[a-z2-7]{26}[\s\S]*no-room-for-answer[\s\S]*338 tokens of prompt/);
  const { partitions } = await statusOf(project);
  expect(partitions[0]).toMatchObject({ done: 1, aside: 0 });
});

test('a max-tokens that no prompt would fit under is an error of the run, before anything is asked or where a server first says so', async () => {
  const project = await shortProject({}, 'vllm', { sampling: { 'max-tokens': CONTEXT, seed: 7 } });
  const known = await project.aerie(['run', 'run.yaml']);
  expect(known.code, known.stderr).toBe(4);
  expect(known.stderr).toMatch(
    /server\.rejects[\s\S]*max-tokens 400 leaves no room[\s\S]*Lower max-tokens[\s\S]*--max-model-len/,
  );
  expect(project.journal()).toEqual([]);

  const message = 'max_tokens is too large: 400. This model supports at most 256 completion tokens, whereas you provided 400.';
  const capped = door.through(
    await lookalikeProject({
      prompts: 5,
      scenario: { faults: [{ do: 'status', status: 400, body: { error: { message } } }] },
    }),
  );
  const told = await capped.aerie(['run', 'run.yaml']);
  expect(told.code, told.stderr).toBe(4);
  expect(told.stderr).toMatch(/server\.rejects[\s\S]*answers of at most 256 tokens/);
  expect(promptStates(capped.runFolder)['aside']).toBeUndefined();
});

test('the embedded engine itself: its own words, its own count', async () => {
  const engine = await startEmbedded(['--context', '256', '--sequences', '2']);
  onTestFinished(engine.stop);
  const project = door.through(await lookalikeProject({ prompts: 0 }));
  project.writeRows('prompts.jsonl', [{ prompt: 'hello' }, { prompt: 'word '.repeat(400) }, { prompt: 'w '.repeat(2_000_000) }]);
  project.change({
    model: 'tiny',
    servers: [{ engine: 'embedded', attach: engine.baseUrl }],
    sampling: { 'max-tokens': 24, seed: 3 },
  });
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(0);
  const { partitions, outcomes } = await statusOf(project);
  expect(partitions[0]).toMatchObject({ done: 1, aside: 2, setAsideBecause: { 'longer-than-context': 2 } });
  // The middle one was counted, the last is so long that the engine refuses it uncounted.
  expect(outcomes).toEqual({ completed: 1, refused: 1 });
});
