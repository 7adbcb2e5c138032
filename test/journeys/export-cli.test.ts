/** `aerie export` on a real run: every trainer, what check finds left out, the same prompts held out, nothing of the run touched. */
import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import type { Project } from '../support/cli.ts';
import { openDoor } from '../support/cli-door.ts';
import { readExport } from '../support/read-export.mjs';
import { readParquetFolder } from '../support/read-parquet.ts';
import { readShardLines } from '../support/run-folder.ts';
import { tinyProject } from '../support/tiny-project.ts';

const door = openDoor();

const PARTITIONS = ['A', 'B', 'C'];
const removals: (() => void)[] = [];
afterAll(() => removals.forEach((remove) => void remove()));

let shared: Promise<Project> | undefined;
const finished = (): Promise<Project> => {
  shared ??= finish();
  return shared;
};

async function finish(): Promise<Project> {
  const project = door.through(await tinyProject({}, (remove) => void removals.push(remove)));
  const result = await project.aerie(['run', 'run.yaml', '--json']);
  expect(result.code, result.stdout).toBe(0);
  return project;
}

const recordsOf = (project: Project) => PARTITIONS.flatMap((name) => readShardLines(project.path('runs/r'), name));
const shardBytes = (project: Project) =>
  PARTITIONS.map((name) => readFileSync(project.path(`runs/r/records/${name}/00000.jsonl`), 'utf8'));

async function exported<T>(project: Project, to: string, ...flags: readonly string[]): Promise<T> {
  const result = await project.aerie(['export', 'run.yaml', '--to', to, '--json', ...flags]);
  expect(result.code, result.stdout).toBe(0);
  return result.json().data as T;
}

interface Report {
  readonly partitions: readonly { readonly records: number; readonly withheld: Readonly<Record<string, number>> }[];
  readonly counts?: { readonly tokens: number; readonly coverage: number };
}

test('every trainer gets all that its format can say of the run', async () => {
  const project = await finished();
  const before = shardBytes(project);
  const records = recordsOf(project);
  for (const target of ['specforge', 'speculators', 'modelopt', 'automodel', 'eagle']) {
    await exported(project, target, '--for', target);
    const read = readExport(project.path(target));
    expect(read.findings, target).toEqual([]);
    const rows = read.tokenRows.length + read.messageRows.length + read.eagleRows.length;
    expect(rows, target).toBeGreaterThan(0);
  }
  await exported(project, 'parquet', '--for', 'parquet');
  const { rows } = await readParquetFolder(project.path('parquet/tokens'));
  const written = rows.flatMap((row) =>
    (row['input_ids'] as number[]).filter((_id, at) => (row['loss_mask'] as number[])[at] === 1),
  );
  expect(written.sort((a, b) => a - b)).toEqual(
    records.flatMap((record) => record.turns.flatMap((turn) => turn.outputIds)).sort((a, b) => a - b),
  );
  expect(shardBytes(project)).toEqual(before);
});

test('--without leaves out just what check finds, and counts are of what is left', async () => {
  const project = await finished();
  const records = recordsOf(project);
  const truncated = records.filter((record) => record.flags.includes('truncated')).map(({ id }) => id);
  expect(truncated.length).toBeGreaterThan(0);
  const flags = ['--for', 'speculators', '--without', 'tool-result-missing,truncated', '--draft-vocab', '8'];
  const report = await exported<Report>(project, 'left', ...flags);
  expect(report.partitions.reduce((sum, { withheld }) => sum + (withheld['truncated'] ?? 0), 0)).toBe(truncated.length);
  expect(report.partitions.reduce((sum, part) => sum + part.records, 0)).toBe(records.length - truncated.length);
  const left = records.filter((record) => !record.flags.includes('truncated'));
  expect(report.counts?.tokens).toBe(left.flatMap((record) => record.turns.flatMap((turn) => turn.outputIds)).length);
  expect(readdirSync(project.path('left.counts'))).toContain('d2t.npy');
});

test('--held-out holds out the same prompts for two trainers, and --partition exports one', async () => {
  const project = await finished();
  await exported(project, 'one', '--for', 'specforge', '--held-out', '0.5');
  await exported(project, 'two', '--for', 'speculators', '--held-out', '0.5');
  const heldOut = (folder: string) => readExport(project.path(`${folder}/held-out`)).tokenRows.map((row) => row.primary_id);
  expect(heldOut('two')).toEqual(heldOut('one'));
  await exported(project, 'b', '--for', 'speculators', '--partition', 'B');
  expect(readExport(project.path('b')).files).toEqual(['tokens/B.tokens-00000.jsonl']);
});

test.each([
  ['a partition that the run has not', ['--partition', 'Z'], 'A, B, C'],
  ['a finding that check has not', ['--without', 'nope'], 'truncated'],
  ['an overlap with no list', ['--without', 'benchmark-overlap'], '--benchmarks'],
  ['a share that is none', ['--held-out', '1'], '0.02'],
  ['a draft vocabulary larger than the target', ['--draft-vocab', '99999999'], '32000'],
  ['an extended mask for another trainer', ['--extend-mask'], 'Leave it out'],
])('%s is refused with what to type, and nothing is written', async (_what, flags, remedy) => {
  const project = await finished();
  const before = readdirSync(project.path('.')).sort();
  const result = await project.aerie(['export', 'run.yaml', '--for', 'speculators', '--to', 'refused', ...flags]);
  expect(result.code).toBe(2);
  expect(result.stderr).toContain(remedy);
  expect(readdirSync(project.path('.')).sort()).toEqual(before);
});
