/** Shards on a real disk: what is appended, cut, sealed, and what is left after a death at each point. */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import { shardPath } from './shard-path.ts';
import { openShardWriter, type ShardPoint, type ShardWriterOptions } from './shard-writer.ts';

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const line = (text: string) => Buffer.from(`${JSON.stringify(text)}\n`);
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aerie-shard-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const pathOf = (number: number) => shardPath(folder, 'B1', number);
const open = (changed: Partial<ShardWriterOptions> = {}) =>
  openShardWriter({ folder, partition: 'B1', number: 0, committedBytes: 0, ...changed });
const codeOf = async (work: Promise<unknown>) =>
  await work.then(
    () => 'nothing thrown',
    (thrown: { code?: string }) => thrown.code,
  );

test('lines lie one after the other, each with its place and hash', async () => {
  const writer = await open();
  const lines = ['a', 'bé', ''].map(line);
  const first = await writer.append(lines.slice(0, 2));
  const second = await writer.append(lines.slice(2));
  expect(await writer.append([])).toEqual([]);
  const bytes = readFileSync(pathOf(0));
  expect(bytes.equals(Buffer.concat(lines))).toBe(true);
  for (const [index, place] of [...first, ...second].entries()) {
    expect(bytes.subarray(place.offset, place.offset + place.bytes).equals(lines[index] as Buffer)).toBe(true);
    expect(place.sha256).toBe(sha256(lines[index] as Buffer));
  }
  expect([writer.durableBytes, writer.cutBytes, writer.path]).toEqual([
    bytes.length,
    0,
    join(folder, 'records', 'B1', '00000.jsonl'),
  ]);
  await writer.close();
});

test('more lines than one writev takes are appended whole', async () => {
  const writer = await open();
  const lines = Array.from({ length: 3_000 }, (_, index) => line(String(index)));
  await writer.append(lines);
  expect(readFileSync(pathOf(0)).equals(Buffer.concat(lines))).toBe(true);
  await writer.close();
});

test('whatever lies after the committed bytes is cut, and the committed bytes are untouched', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string(), { maxLength: 8 }),
      fc.uint8Array({ maxLength: 3_000 }),
      fc.string(),
      async (texts, garbage, next) => {
        const committed = Buffer.concat(texts.map(line));
        mkdirSync(dirname(pathOf(0)), { recursive: true });
        writeFileSync(pathOf(0), Buffer.concat([committed, garbage]));
        const writer = await open({ committedBytes: committed.length });
        expect(writer.cutBytes).toBe(garbage.length);
        expect(readFileSync(pathOf(0)).equals(committed)).toBe(true);
        await writer.append([line(next)]);
        expect(readFileSync(pathOf(0)).equals(Buffer.concat([committed, line(next)]))).toBe(true);
        await writer.close();
      },
    ),
    { numRuns: runs(60) },
  );
});

test('a file shorter than what is committed is damage, told with numbers and left alone', async () => {
  const writer = await open();
  await writer.append([line('abc'), line('def')]);
  await writer.close();
  truncateSync(pathOf(0), 7);
  await expect(open({ committedBytes: 12 })).rejects.toMatchObject({
    code: 'ledger.damaged',
    message: expect.stringContaining('has 7 bytes and the ledger has committed 12'),
  });
  expect(readFileSync(pathOf(0))).toHaveLength(7);
});

test('a rollback takes back what the ledger refused, and the next append is right', async () => {
  const writer = await open();
  await writer.append([line('kept')]);
  const kept = writer.durableBytes;
  await writer.append([line('refused'), line('too')]);
  await writer.rollback(kept);
  expect(await writer.append([line('next')])).toMatchObject([{ offset: kept }]);
  expect(readFileSync(pathOf(0)).equals(Buffer.concat([line('kept'), line('next')]))).toBe(true);
  expect(await codeOf(writer.rollback(writer.durableBytes + 1))).toBe('bug.invariant');
  await writer.close();
});

test('a seal hashes the file as it lies, and the next append begins the next shard', async () => {
  const points: ShardPoint[] = [];
  const writer = await open({ sealBytes: 10, at: (point) => points.push(point) });
  await writer.append([line('abc')]);
  expect(writer.isFull).toBe(false);
  await writer.append([line('defg')]);
  expect(writer.isFull).toBe(true);
  const bytes = readFileSync(pathOf(0));
  expect(await writer.seal()).toEqual({ number: 0, bytes: bytes.length, sha256: sha256(bytes) });
  expect([writer.number, writer.durableBytes, writer.isFull]).toEqual([1, 0, false]);
  expect(await writer.append([line('h')])).toMatchObject([{ offset: 0 }]);
  expect(readFileSync(pathOf(0)).equals(bytes)).toBe(true);
  expect(readFileSync(pathOf(1)).equals(line('h'))).toBe(true);
  const append: ShardPoint[] = ['after-append', 'after-sync'];
  expect(points).toEqual([...append, ...append, 'before-seal', 'after-seal-hash', ...append]);
  await writer.close();
});

test('a shard that was full at the death of its writer is full again, and what had begun the next one is cut', async () => {
  const writer = await open({ sealBytes: 5 });
  await writer.append([line('abc')]);
  const first = await writer.seal();
  await writer.append([line('uncommitted')]);
  await writer.close();
  const again = await open({ sealBytes: 5, committedBytes: first.bytes });
  expect(again.isFull).toBe(true);
  expect(await again.seal()).toEqual(first);
  expect([again.number, readFileSync(pathOf(1)).length]).toEqual([1, 0]);
  await again.close();
});

test('a full disk is named, and nothing more is written where even the cut fails', async () => {
  mkdirSync(dirname(pathOf(0)), { recursive: true });
  symlinkSync('/dev/full', pathOf(0)); // every write to it answers ENOSPC
  const writer = await open();
  expect(await codeOf(writer.append([line('a')]))).toBe('disk.full');
  expect(await codeOf(writer.append([line('a')]))).toBe('disk.failed');
  await writer.close();
});

// prlimit is Linux's. The limit is the soft one, so that it can be lifted again; the signal that comes with it is ignored.
test.skipIf(process.platform !== 'linux')('an append that stops half-way is cut off, and a later one is right', async () => {
  const ignore = () => {};
  process.on('SIGXFSZ', ignore);
  const limitFiles = (bytes: string) => execFileSync('prlimit', [`--pid=${process.pid}`, `--fsize=${bytes}:`]);
  const writer = await open();
  const [kept] = await writer.append([line('kept')]);
  try {
    limitFiles('2048');
    expect(await codeOf(writer.append([line('a'.repeat(1_000)), line('b'.repeat(2_000))]))).toBe('disk.failed');
  } finally {
    limitFiles('unlimited');
    process.off('SIGXFSZ', ignore);
  }
  expect(readFileSync(pathOf(0)).equals(line('kept'))).toBe(true);
  expect(await writer.append([line('next')])).toMatchObject([{ offset: kept?.bytes }]);
  expect(readFileSync(pathOf(0)).equals(Buffer.concat([line('kept'), line('next')]))).toBe(true);
  await writer.close();
});

test('a line without its newline and two appends at once are bugs', async () => {
  const writer = await open();
  expect(await codeOf(writer.append([Buffer.from('{}')]))).toBe('bug.invariant');
  const both = await Promise.allSettled([writer.append([line('a')]), writer.append([line('b')])]);
  expect(both.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  expect(readFileSync(pathOf(0)).equals(line('a'))).toBe(true);
  await writer.close();
});

test('a folder that is a file is an error of the disk and makes nothing', async () => {
  appendFileSync(join(folder, 'records'), '');
  expect(await codeOf(open())).toBe('disk.failed');
  chmodSync(join(folder, 'records'), 0o600);
  expect(existsSync(pathOf(0))).toBe(false);
});
