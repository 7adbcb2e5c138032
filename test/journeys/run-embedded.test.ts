/** A whole run on the embedded engine: run, status, check, export, read back by a reader that knows nothing of Aerie. */
import { afterAll, expect, test } from 'vitest';
import type { RecordTurn } from '../../src/shard/record.ts';
import { openDecoder } from '../../src/tokens/decoder.ts';
import { proves } from '../proves.ts';
import { childrenOf, isAlive, until } from '../support/child-processes.ts';
import type { Project, StartedCli } from '../support/cli.ts';
import { writeTinyGguf } from '../support/make-gguf.ts';
import { readExport } from '../support/read-export.mjs';
import { promptStates, query, readShardLines } from '../support/run-folder.ts';
import { idByHand, MAX_TOKENS, SOURCES, tinyProject } from '../support/tiny-project.ts';

const PARTITIONS = ['A', 'B', 'C'];
const removals: (() => void)[] = [];
afterAll(() => removals.forEach((remove) => void remove()));

/** One finished run that several tests read. */
let shared: Promise<Project> | undefined;
const finished = (): Promise<Project> => {
  shared ??= finish();
  return shared;
};

const recordsOf = (project: Project) => PARTITIONS.flatMap((name) => readShardLines(project.path('runs/r'), name));

async function finish(): Promise<Project> {
  const project = await tinyProject({}, (remove) => void removals.push(remove));
  const result = await project.aerie(['run', 'run.yaml', '--json']);
  expect(result.code, result.stdout).toBe(0);
  expect(result.stderr).toBe('');
  expect(result.json()).toMatchObject({ aerie: 1, command: 'run', data: { run: 'r', session: { records: 6 } } });
  return project;
}

proves(
  'record:ids-from-engine',
  'records agree with themselves and with what was asked, and the same run gives the same ones',
  async () => {
    const [project, twin] = [await finished(), await finish()];
    const records = recordsOf(project);
    const bySource = new Map(records.map((record) => [record.id, record]));
    expect(bySource.size).toBe(6);

    const twoTurns = SOURCES.A[1]?.messages?.filter(({ role }) => role === 'user') ?? [];
    const system = SOURCES.B[0]?.messages ?? [];
    expect(bySource.get(idByHand(twoTurns))).toMatchObject({ partition: 'A', messages: twoTurns });
    expect(bySource.get(idByHand(system))).toMatchObject({ partition: 'B', messages: system });
    for (const record of records) {
      expect(record.id).toBe(idByHand(record.messages));
      expect(record).toMatchObject({
        v: 1,
        exact: true,
        inexactBecause: '',
        tools: [],
        sampling: { maxTokens: MAX_TOKENS, seed: 11 },
      });
      expect(record.turns.length).toBe(record.messages.filter(({ role }) => role === 'user').length);
      const isRetokenised = record.turns.some(({ continues }, at) => at > 0 && continues === 0);
      expect(record.flags.includes('history-retokenised')).toBe(isRetokenised);
      expect(record.flags.includes('truncated')).toBe(record.turns.some(({ finish }) => finish === 'length'));
      let length = 0;
      for (const turn of record.turns) {
        expect(turn.usage.prompt).toBe(turn.continues + turn.promptIds.length);
        expect(turn.usage.completion).toBe(turn.outputIds.length);
        expect(turn.finish === 'length').toBe(turn.outputIds.length === MAX_TOKENS && !turn.endsWithStopId);
        expect([0, length]).toContain(turn.continues);
        expect(turn.seed).toBeGreaterThanOrEqual(0);
        expect(turn.seed).toBeLessThan(2 ** 31);
        length = turn.continues + turn.promptIds.length + turn.outputIds.length;
      }
      const { model, revision, engine, engineVersion, weights, kvCacheDtype, templateHash, launch, aerie } = record.provenance;
      expect({ model, engine, weights }).toEqual({
        model: 'tiny.gguf',
        engine: 'embedded',
        weights: expect.stringMatching(/f32/i),
      });
      expect(revision).toMatch(/^sha256:[0-9a-f]{16}$/);
      expect(templateHash).toMatch(/^[0-9a-f]{64}$/);
      expect([engineVersion, kvCacheDtype, aerie].every((text) => text !== '') && launch > 0).toBe(true);
    }
    expect(records.some(({ flags }) => flags.includes('truncated'))).toBe(true);
    const seedsOf = (of: Project) => recordsOf(of).map(({ id, turns }) => [id, turns.map(({ seed }) => seed)] as const);
    expect(new Map(seedsOf(twin))).toEqual(new Map(seedsOf(project)));
    expect(new Set(records.flatMap(({ turns }) => turns.map(({ seed }) => seed))).size).toBe(8);
  },
);

proves(
  'input:bad-row-never-stops',
  'bad rows are counted, named with line and reason, and kept out; duplicates are asked once',
  async () => {
    const project = await finished();
    const rejected = project
      .read('runs/r/rejected/A.ndjson')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(rejected).toMatchObject([
      { line: 3, reason: 'empty-content' },
      { line: 5, reason: 'not-json', excerpt: 'this is not JSON' },
    ]);
    const status = await project.aerie(['status', 'run.yaml']);
    expect(status.stdout).toMatch(/^A +2 +2 +3 +\d +0 +2 +1 +\d+ +none$/m);
    expect(status.stdout).toMatch(/refused +A +1 × not-json .*rejected\/A\.ndjson/);
    expect(status.stdout).toMatch(/next +aerie check .*runs\/r$/m);
  },
);

test('check names the answers with a token that has no text, and both exports are what their trainers read', async () => {
  const project = await finished();
  const [checked, text] = [await project.aerie(['check', 'run.yaml', '--json']), await project.aerie(['check', 'run.yaml'])];
  const { records, findings, drift, ...nothing } = checked.json().data;
  const { added_tokens } = JSON.parse(project.read('runs/r/tokenizer/tokenizer.json'));
  // Random weights also give control tokens in the middle of an answer; the engine's text leaves them out, and check says so (a warning).
  const control = new Set((added_tokens as { id: number }[]).map(({ id }) => id));
  const leaks = ({ outputIds, endsWithStopId }: RecordTurn) =>
    outputIds.slice(0, endsWithStopId ? -1 : undefined).some((id) => control.has(id));
  const leaking = recordsOf(project).filter(({ turns }) => turns.some(leaks));
  const found = findings as { severity: string; code: string; count: number }[];
  expect(found.filter(({ severity }) => severity === 'error')).toEqual([]);
  expect(found.find(({ code }) => code === 'special-token')?.count ?? 0).toBe(leaking.length);
  expect({ records, nothing }).toEqual({ records: 6, nothing: {} });
  for (const finding of found) expect(Object.keys(finding)).toEqual(['code', 'severity', 'count', 'share', 'exampleIds', 'next']);
  // The template in the run folder makes the very prompt ids that the engine used; random weights choose odd tokens for an answer.
  expect(found.map(({ code }) => code)).not.toContain('prompt-drift');
  const rowsOf = ({ turns }: { turns: readonly RecordTurn[] }) =>
    turns.every(({ continues }, at) => at === 0 || continues > 0) ? 1 : turns.length;
  expect(drift).toEqual({
    rows: recordsOf(project).reduce((sum, record) => sum + rowsOf(record), 0),
    differing: expect.any(Number),
  });
  expect([checked.code, text.code]).toEqual([0, 0]);
  expect(text.stdout).toContain('ids decode to their text in 8 of 8 answers');
  const { rows, differing } = drift as { rows: number; differing: number };
  expect(text.stdout).toContain(`the same ids come out in ${rows - differing} of ${rows} token rows`);

  const facts = JSON.parse(String(query(project.path('runs/r'), "SELECT value FROM meta WHERE key = 'identity'")[0]?.['value']));
  for (const [target, shapes] of [
    ['specforge', ['conversations', 'tokens']],
    ['speculators', ['tokens']],
  ] as const) {
    const exported = await project.aerie(['export', 'runs/r', '--for', target]);
    expect(exported.code, exported.stderr).toBe(0);
    const seen = readExport(project.path(`runs/r/export/${target}`), { vocabularySize: Number(facts['tokens.vocabularySize']) });
    expect(seen.findings).toEqual([]);
    expect([...new Set(seen.files.map((file) => file.split('/')[0]))]).toEqual(shapes);
    const supervised = seen.tokenRows.flatMap(({ input_ids, loss_mask }) => input_ids.filter((_, at) => loss_mask[at] === 1));
    const generated = recordsOf(project).flatMap(({ turns }) => turns.flatMap(({ outputIds }) => outputIds));
    expect(supervised.toSorted((a, b) => a - b)).toEqual(generated.toSorted((a, b) => a - b));
  }
});

test('the tokenizer of the run folder decodes the prompt ids of every first turn to what was asked', async () => {
  const project = await finished();
  const read = (name: string) => JSON.parse(project.read(`runs/r/tokenizer/${name}`)) as object;
  const decoder = openDecoder(read('tokenizer.json'), read('tokenizer_config.json'));
  for (const { messages, turns } of recordsOf(project)) {
    const asked = messages.slice(0, messages.findIndex(({ role }) => role === 'user') + 1);
    const whole = asked[0]?.role === 'system' ? asked : [{ role: 'system', content: 'You answer.' }, ...asked]; // the template's default
    const rendered = whole.map(({ role, content }) => `<|im_start|>${role}\n${content}<|im_end|>\n`).join('');
    expect(decoder.decode(turns[0]?.promptIds ?? [])).toBe(`${rendered}<|im_start|>assistant\n`);
  }
});

const LONG = { sampling: { 'max-tokens': 900, seed: 1 } };

async function startedEngine(project: Project): Promise<{ run: StartedCli; engine: number }> {
  const run = project.start(['run', 'run.yaml']);
  await run.line(/embedded-0: ready at/);
  const [engine, ...others] = childrenOf(run.pid);
  expect(others).toEqual([]);
  if (engine === undefined) throw new Error('aerie has no child');
  return { run, engine };
}

for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
  proves('engine:no-orphan', `the engine ends with Aerie after ${signal}`, async () => {
    const { run, engine } = await startedEngine(await tinyProject(LONG));
    expect(isAlive(engine)).toBe(true);
    run.kill(signal);
    const { code, signal: by } = await run.ended;
    expect([code, by]).toEqual(signal === 'SIGKILL' ? [null, 'SIGKILL'] : [143, null]);
    await until(() => !isAlive(engine), 10_000);
  });
}

proves(
  'prompt:server-death-blames-nobody',
  'an engine killed in the middle is started again, and every prompt is answered',
  async () => {
    const project = await tinyProject({ sampling: { 'max-tokens': 200, seed: 1 } });
    const { run, engine } = await startedEngine(project);
    process.kill(engine, 'SIGKILL'); // a child of the run that this test has started
    await run.line(/embedded-0: lost \(signal SIGKILL\); requests in flight will be asked again/);
    const result = await run.ended;
    expect(result.code, result.stderr).toBe(0);
    expect(result.stderr.match(/embedded-0: ready at/g)?.length).toBe(2);
    expect(promptStates(project.path('runs/r'))).toEqual({ done: 6 });
    expect(recordsOf(project).length).toBe(6);
    const launches = query(project.path('runs/r'), 'SELECT DISTINCT launch FROM records');
    expect(launches.map(({ launch }) => launch)).toContain(2);
  },
);

test('a model file that was replaced is another model, and the run refuses it', async () => {
  const project = await finish();
  await writeTinyGguf(project.path('tiny.gguf'), { seed: 2 });
  project.write('d.jsonl', '{"prompt":"one more"}\n');
  const run = JSON.parse(project.read('run.yaml'));
  project.writeRun('run.yaml', { ...run, partitions: [...run.partitions, { name: 'D', from: 'd.jsonl' }] });
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(2);
  expect(result.stderr).toMatch(/run-file\.differs[\s\S]*revision of the model: was sha256:\w+, is now sha256:\w+/);
  expect(recordsOf(project).length).toBe(6);
});
