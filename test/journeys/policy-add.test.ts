/**
 * The veto that comes when the records are made: `aerie policy add` on a run that made them with a KV cache of 8.5 bits, killed on its
 * way; afterwards none of them is in any export, and the same run file without the lever makes every prompt once.
 */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { watchControl } from '../../src/app/control.ts';
import { applyRule } from '../../src/app/policy/apply-rule.ts';
import { nodeHost } from '../../src/host/node-host.ts';
import { openSqliteLedger } from '../../src/ledger/sqlite/open-ledger.ts';
import { holdRun } from '../../src/ledger/sqlite/worker-lock.ts';
import { proves } from '../proves.ts';
import type { Project } from '../support/cli.ts';
import { filesBelow, promptStates, query } from '../support/run-folder.ts';
import { tinyProject } from '../support/tiny-project.ts';

const VETO = [
  ...['--forbid', 'kv-cache=below-16-bit'],
  ...['--because', 'FP8 KV degrades the model noticeably', '--by', 'model owner'],
];
const RULE = { forbid: { 'kv-cache': 'below-16-bit' }, because: 'FP8 KV degrades the model noticeably', by: 'model owner' };
const servers = (kvType: string) => ({
  servers: [{ engine: 'embedded', flags: { threads: 1, context: 1024, sequences: 4, 'kv-type': kvType } }],
});

async function madeWith8Bits(): Promise<{ project: Project; folder: string; records: number }> {
  const project = await tinyProject(servers('q8_0'));
  const made = await project.aerie(['run', 'run.yaml']);
  expect(made.code, made.stderr).toBe(0);
  const folder = project.path('runs/r');
  return { project, folder, records: stateCounts(folder)['live/q8_0'] ?? 0 };
}

/** `live/f16`: how many records are in which state, and the KV type of their launches. */
function stateCounts(folder: string): Record<string, number> {
  const rows = query(
    folder,
    `SELECT state || '/' || kv_cache_dtype AS what, count(*) AS n FROM records JOIN launches ON id = launch GROUP BY what`,
  );
  return Object.fromEntries(rows.map((row) => [String(row['what']), Number(row['n'])]));
}

const runOf = (project: Project) => JSON.parse(readFileSync(project.path('run.yaml'), 'utf8')) as object;
const spent = (folder: string) =>
  query(folder, 'SELECT sum(spent_tokens) AS spent, sum(generated_tokens) AS generated FROM partitions')[0];

proves(
  'policy:later-rule-withdraws',
  'a rule added to a finished run withdraws what broke it, whenever it is killed, and the run makes every prompt anew and once',
  async () => {
    const { project, folder, records } = await madeWith8Bits();
    expect(records).toBeGreaterThan(3);
    const generated = spent(folder)?.['generated'];

    for (const [point, left] of [
      ['before-rule', { 'live/q8_0': records }],
      ['after-rule', { 'withdrawn/q8_0': records }],
    ] as const) {
      const killed = await project.aerie(['policy', 'add', 'run.yaml', ...VETO], { env: { AERIE_CRASH_AT: point } });
      expect(killed.signal).toBe('SIGKILL');
      expect(stateCounts(folder)).toEqual(left);
    }
    const again = await project.aerie(['policy', 'add', 'run.yaml', ...VETO]);
    expect(again.code, again.stderr).toBe(0);
    expect(query(folder, `SELECT count(*) AS n FROM events WHERE kind = 'policy.added'`)).toEqual([{ n: 1 }]);
    expect(promptStates(folder)).toEqual({ waiting: records });
    expect(spent(folder)).toEqual({ spent: 0, generated });

    const exported = await project.aerie(['export', 'run.yaml', '--for', 'specforge']);
    expect(
      filesBelow(join(folder, 'export')).filter((path) => path.endsWith('.jsonl')),
      exported.stdout,
    ).toEqual([]);
    const status = await project.aerie(['status', 'run.yaml']);
    expect(status.stdout).toMatch(
      /^policy {5}forbid kv-cache: below-16-bit: FP8 KV degrades the model noticeably \(decided by model owner, added /m,
    );

    const refused = await project.aerie(['run', 'run.yaml', '--json']);
    expect([refused.code, JSON.parse(refused.stdout)]).toMatchObject([2, { error: { code: 'policy.forbids' } }]);
    project.writeRun('run.yaml', { ...runOf(project), ...servers('f16') });
    const anew = await project.aerie(['run', 'run.yaml']);
    expect(anew.code, anew.stderr).toBe(0);
    expect(promptStates(folder)).toEqual({ done: records });
    expect(stateCounts(folder)).toEqual({ 'withdrawn/q8_0': records, 'live/float16': records });
    expect(query(folder, 'SELECT DISTINCT round FROM prompts')).toEqual([{ round: 1 }]);
    const checked = await project.aerie(['check', 'run.yaml', '--json']);
    expect(JSON.parse(checked.stdout)).toMatchObject({ data: { records } });
  },
  300_000,
);

test('a rule in the run file withdraws at the next start what was made before it stood there', async () => {
  const { project, folder, records } = await madeWith8Bits();
  project.writeRun('run.yaml', { ...runOf(project), ...servers('f16'), policy: [RULE] });
  const anew = await project.aerie(['run', 'run.yaml']);
  expect(anew.code, anew.stderr).toBe(0);
  expect(stateCounts(folder)).toEqual({ 'withdrawn/q8_0': records, 'live/float16': records });
});

test('where a worker holds the run, the worker does it and its answer is shown', async () => {
  const { project, folder, records } = await madeWith8Bits();
  const { clock } = nodeHost();
  const held = holdRun(folder, { pid: process.pid, host: hostname(), startedAt: 0 });
  const ledger = openSqliteLedger(join(folder, 'ledger.sqlite'), { clock });
  const ending = new AbortController();
  const watching = watchControl({
    ...{ folder, clock, signal: ending.signal },
    onRule: (rule) => Promise.resolve(applyRule(rule, ledger).outcome),
  });
  onTestFinished(async () => {
    ending.abort();
    await watching;
  });
  const added = await project.aerie(['policy', 'add', 'run.yaml', ...VETO, '--json']);
  expect(added.code, added.stderr).toBe(0);
  const { data } = JSON.parse(added.stdout) as { data: object };
  expect(data).toMatchObject({ byWorker: true, rule: 'forbid kv-cache: below-16-bit', records, prompts: records });
  ledger.close();
  held.release();
  expect(stateCounts(folder)).toEqual({ 'withdrawn/q8_0': records });
  expect(filesBelow(join(folder, 'control'))).toEqual([]);
});

test.each([
  [['--forbid', 'kv-cache=fp8'], '--forbid kv-cache  is "fp8"; it must be below-16-bit or below-8-bit'],
  [['--forbid', 'kvcache=below-16-bit'], '--forbid kvcache  is no key of a run file; did you mean kv-cache?'],
  [['--forbid', 'below-16-bit'], '--forbid "below-16-bit"  is no SUBJECT=VALUE, as kv-cache=below-16-bit'],
  [['--min', 'pool=1', '--max', 'pool=2'], 'the rule  must have exactly one of forbid, require, min, max; it has min and max'],
])('%j is no rule, and nothing is looked at', async (words, line) => {
  const project = await tinyProject();
  const refused = await project.aerie(['policy', 'add', 'run.yaml', ...words, '--because', 'x', '--by', 'y']);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain(line);
});

test('a run that has not begun has its rules in its file', async () => {
  const project = await tinyProject();
  const refused = await project.aerie(['policy', 'add', 'run.yaml', ...VETO]);
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain('Write the rule under policy: in ');
});
