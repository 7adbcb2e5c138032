/**
 * `aerie run --redo`, killed at every planted point and gone on with by the plain command: after each death each prompt has
 * one live record, its bytes are those that were committed, and what was superseded is in no export.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { TrainingRecord } from '../../src/shard/record.ts';
import { proves } from '../proves.ts';
import { type LookalikeProject, lookalikeProject } from '../support/lookalike-project.ts';
import { filesBelow, query } from '../support/run-folder.ts';

const PROMPTS = 30;
/** The n-th passing of each point; the first death is in the life that marks the records to be made anew. */
const DEATHS = [
  ['before-commit', 1],
  ['after-append', 1],
  ['after-sync', 2],
  ['after-commit', 1],
  ['before-seal', 1],
  ['after-seal-hash', 1],
  ['before-commit', 2],
  ['after-commit', 2],
] as const;
const ENV = { AERIE_SEAL_BYTES: '4000' }; // a few records

const STORED = `SELECT partitions.name AS partition, prompts.id, shard, records.offset, records.bytes, sha256, records.state
  FROM records JOIN prompts ON prompts.ordinal = prompt JOIN partitions ON partitions.ordinal = records.partition`;

interface Stored {
  readonly id: string;
  readonly state: string;
  readonly record: TrainingRecord;
}

/** Every record that the ledger has ever had, read from the bytes it vouches for. */
function stored(project: LookalikeProject): Stored[] {
  return query(project.runFolder, STORED).map((row) => {
    const shard = readFileSync(
      join(project.runFolder, 'records', String(row['partition']), `${String(row['shard']).padStart(5, '0')}.jsonl`),
    );
    const line = shard.subarray(Number(row['offset']), Number(row['offset']) + Number(row['bytes']));
    expect(createHash('sha256').update(line).digest('hex')).toBe(row['sha256']);
    return { id: String(row['id']), state: String(row['state']), record: JSON.parse(line.toString()) as TrainingRecord };
  });
}

const only = (rows: readonly Stored[], state: string) => rows.filter((row) => row.state === state);
const answersOf = (rows: readonly Stored[]) => rows.map(({ record }) => record.turns[0]?.text ?? '').toSorted();

function expectOneEach(project: LookalikeProject): Stored[] {
  const rows = stored(project);
  const live = only(rows, 'live').map(({ id }) => id);
  expect(live).toHaveLength(PROMPTS);
  expect(new Set(live).size).toBe(PROMPTS);
  return rows;
}

async function expectExported(project: LookalikeProject, rows: readonly Stored[]): Promise<void> {
  const exported = await project.aerie(['export', 'run.yaml', '--for', 'specforge']);
  expect(exported.code, exported.stderr).toBe(0);
  const files = filesBelow(join(project.runFolder, 'export/specforge/conversations'));
  const lines = files.flatMap((path) => readFileSync(path, 'utf8').trim().split('\n'));
  const said = lines.map((line) => (JSON.parse(line) as { conversations: { content: string }[] }).conversations.at(-1)?.content);
  expect(said.toSorted()).toEqual(answersOf(only(rows, 'live')));
}

proves(
  'record:superseded-by-new',
  'killed at every point of a commit during a redo, and gone on with: one live record each, nothing superseded is exported',
  async () => {
    const scenario = { latency: { kind: 'uniform', minMs: 10, maxMs: 60 }, answerTokens: { kind: 'uniform', min: 8, max: 60 } };
    const project = await lookalikeProject({ prompts: PROMPTS, scenario });
    const first = await project.aerie(['run', 'run.yaml'], { env: ENV });
    expect(first.code, first.stderr).toBe(0);
    const before = expectOneEach(project);
    const asked = before.map(({ id }) => id);

    let kills = 0;
    for (const [point, times] of DEATHS) {
      const args = kills === 0 ? ['--redo', asked.join()] : [];
      const life = await project.aerie(['run', 'run.yaml', ...args], { env: { ...ENV, AERIE_CRASH_AT: `${point}:${times}` } });
      if (life.signal !== 'SIGKILL')
        expect(life.code, life.stderr).toBe(0); // it had nothing left to pass that point with
      else kills += 1;
      const rows = expectOneEach(project);
      // Nothing that was there is lost: each first record is live still, or superseded by a newer one.
      expect(rows.filter(({ record }) => before.some((row) => row.record.turns[0]?.seed === record.turns[0]?.seed))).toHaveLength(
        PROMPTS,
      );
    }
    expect(kills).toBeGreaterThanOrEqual(5);
    await expectExported(project, stored(project));

    const last = await project.aerie(['run', 'run.yaml'], { env: ENV });
    expect(last.code, last.stderr).toBe(0);
    const after = expectOneEach(project);
    expect(
      only(after, 'superseded')
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(asked.toSorted());
    expect(answersOf(only(after, 'superseded'))).toEqual(answersOf(before));
    expect(Number(query(project.runFolder, 'SELECT count(*) AS n FROM prompts WHERE replaces = 1')[0]?.['n'])).toBe(0);
    await expectExported(project, after);
  },
  400_000,
);
