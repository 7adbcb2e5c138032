/** What an opening does with a file that is newer, foreign, torn, absent, read-only, or written by somebody else meanwhile. */

import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { deniedToWrite } from '../../../test/contracts/denied-to-write.ts';
import { attempt, batch, commitOf, enrolled, launch, recordOf, turnOf } from '../../../test/contracts/ledger-rows.ts';
import { openSqliteLedger } from './open-ledger.ts';
import { FORMAT } from './schema.ts';

const clock = { now: () => 5 };
let folder = '';
let path = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aerie-open-'));
  path = join(folder, 'ledger.sqlite');
});
afterEach(() => {
  chmodSync(folder, 0o700);
  rmSync(folder, { recursive: true });
});

function begun(prompts = 3) {
  const ledger = openSqliteLedger(path, { clock });
  ledger.declarePartitions([{ name: 'B1', budget: 0, limit: 0 }]);
  ledger.recordLaunch(launch);
  ledger.enrol(batch({ prompts: enrolled(prompts) }));
  return ledger;
}

const codeOf = (work: () => unknown) => {
  try {
    work();
  } catch (thrown) {
    return (thrown as { code?: string }).code;
  }
  return 'nothing thrown';
};
const openCode = (readOnly = false) => codeOf(() => openSqliteLedger(path, { clock, readOnly }).close());

test('a ledger of a newer format is refused and left as it was', () => {
  begun().close();
  const database = new DatabaseSync(path);
  database.exec(`UPDATE meta SET value = '${FORMAT + 1}' WHERE key = 'format'`);
  database.close();
  const before = readFileSync(path);
  expect([openCode(), openCode(true)]).toEqual(['ledger.newer', 'ledger.newer']);
  expect(readFileSync(path).equals(before)).toBe(true);
});

test('a ledger of an unreleased format is refused and left as it was', () => {
  begun().close();
  const database = new DatabaseSync(path);
  database.exec(`UPDATE meta SET value = '1' WHERE key = 'format'`);
  database.close();
  const before = readFileSync(path);
  expect([openCode(), openCode(true)]).toEqual(['ledger.older', 'ledger.older']);
  expect(readFileSync(path).equals(before)).toBe(true);
});

/** As the Aerie before wrote it: format 4 only adds tables. */
function makeFormat3(): void {
  const database = new DatabaseSync(path);
  for (const table of ['withdrawals', 'also_by', 'policies']) database.exec(`DROP TABLE ${table}`);
  database.exec(`UPDATE meta SET value = '3' WHERE key = 'format'`);
  database.close();
}

test('a ledger of format 3 is read as it is, and carried over by the first work', () => {
  const old = begun(3);
  old.recordLaunch(launch);
  const leases = old.lease('B1', 3);
  const attempts = leases.flatMap((lease, nth) => [
    attempt(lease, { turn: 0, launch: nth === 0 ? 2 : 1 }),
    attempt(lease, { turn: 1 }),
  ]);
  old.commit(commitOf({ attempts, records: leases.map((lease, nth) => recordOf(lease, { offset: nth * 100, turns: 2 })) }));
  old.close();
  makeFormat3();
  const before = readFileSync(path);
  const reader = openSqliteLedger(path, { clock, readOnly: true });
  expect([reader.addedRules(), reader.launches().map(({ isWithdrawn }) => isWithdrawn)]).toEqual([[], [false, false]]);
  expect([...reader.liveRecords('B1')]).toHaveLength(3);
  reader.close();
  expect(readFileSync(path).equals(before)).toBe(true);

  const worker = openSqliteLedger(path, { clock });
  expect(worker.withdraw([2], 'x')).toMatchObject({ records: 1 }); // its first turn came from there
  worker.close();
  expect([openCode(), openCode(true)]).toEqual(['nothing thrown', 'nothing thrown']);
  const database = new DatabaseSync(path, { readOnly: true });
  expect(database.prepare(`SELECT value FROM meta WHERE key = 'format'`).get()).toEqual({ value: `${FORMAT}` });
  database.close();
});

test('what is not SQLite, and SQLite that is no ledger, is damaged and left as it was', () => {
  writeFileSync(path, 'not a database, by any reading of it\n'.repeat(100));
  expect([openCode(), openCode(true)]).toEqual(['ledger.damaged', 'ledger.damaged']);
  rmSync(path);
  const database = new DatabaseSync(path);
  database.exec('CREATE TABLE other (a)');
  database.close();
  const before = readFileSync(path);
  expect([openCode(), openCode(true)]).toEqual(['ledger.damaged', 'ledger.damaged']);
  expect(readFileSync(path).equals(before)).toBe(true);
});

test('a torn or overwritten ledger is damaged', () => {
  begun(2_000).close();
  const whole = readFileSync(path);
  truncateSync(path, whole.length - 50_000);
  expect(openCode()).toBe('ledger.damaged');
  writeFileSync(path, whole);
  expect(openCode()).toBe('nothing thrown');
  writeFileSync(path, whole.fill(0x5a, whole.length / 2, whole.length / 2 + 8_192));
  expect(openCode()).toBe('ledger.damaged');
});

test('a reading of a ledger that is not there makes nothing', () => {
  expect(openCode(true)).toBe('run.absent');
  expect(existsSync(path)).toBe(false);
});

test('a reader sees each commit of a worker at work, and cannot write', () => {
  const worker = begun();
  const reader = openSqliteLedger(path, { clock, readOnly: true });
  const [lease] = worker.lease('B1', 1);
  expect(reader.partitions()[0]).toMatchObject({ leased: 1, spentTokens: 0 });
  worker.commit(commitOf({ turns: [turnOf(lease, 0, { tokens: 9 })] }));
  expect(reader.partitions()[0]).toMatchObject({ leased: 1, spentTokens: 9 });
  expect(codeOf(() => reader.releaseLeases())).toBe('disk.read-only');
  reader.close();
  worker.close();
});

test('a ledger in a folder that cannot be written is read, and refused for work', () => {
  begun().close();
  expect(statSync(`${path}-wal`).size).toBe(0);
  for (const ending of ['-wal', '-shm']) rmSync(`${path}${ending}`); // as they go with the process that made them
  chmodSync(path, 0o444);
  chmodSync(folder, 0o555);
  deniedToWrite(() => {
    const reader = openSqliteLedger(path, { clock, readOnly: true });
    expect(reader.partitions()[0]).toMatchObject({ enrolled: 3 });
    reader.close();
    expect(openCode()).toBe('disk.read-only');
  });
  expect(readdirSync(folder)).toEqual(['ledger.sqlite']);
});

test('a ledger cannot be made in a folder that cannot be written', () => {
  chmodSync(folder, 0o555);
  deniedToWrite(() => expect(openCode()).toBe('disk.read-only'));
});

test('a writer that holds the file for longer than is waited is named as what it is', () => {
  const worker = begun();
  const other = new DatabaseSync(path);
  other.exec('BEGIN IMMEDIATE');
  expect(codeOf(() => worker.lease('B1', 1))).toBe('ledger.held-elsewhere');
  other.exec('ROLLBACK');
  other.close();
  expect(worker.lease('B1', 1)).toHaveLength(1);
  worker.close();
});
