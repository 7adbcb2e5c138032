/** Reading back: every live record once, in order, verified; each kind of damage named. */
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { explainShardLength, type RecordRange, readRecords } from './read-shard.ts';
import { shardPath } from './shard-path.ts';
import { openShardWriter } from './shard-writer.ts';

let folder = '';
let ranges: RecordRange[] = [];
let lines: Buffer[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'aerie-read-'));
  const writer = await openShardWriter({ folder, partition: 'B1', number: 0, committedBytes: 0 });
  // From tiny to larger than one read of 4 MiB, over two shards.
  lines = [10, 3_000_000, 2_000_000, 5_000_000, 1].map((length, index) => Buffer.from(`"${String(index).repeat(length)}"\n`));
  const first = await writer.append(lines.slice(0, 4));
  await writer.seal();
  const second = await writer.append(lines.slice(4));
  await writer.close();
  ranges = [
    ...first.map((place) => ({ partition: 'B1', shard: 0, ...place })),
    ...second.map((place) => ({ partition: 'B1', shard: 1, ...place })),
  ];
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

async function readAll(wanted: readonly RecordRange[]) {
  const read = [];
  for await (const each of readRecords(folder, wanted)) read.push(each);
  return read;
}

test('records come back whole and in order, over shards and with others left out', async () => {
  const read = await readAll(ranges);
  expect(read.every((each, index) => each.ok && each.line.equals(lines[index] as Buffer))).toBe(true);
  const some = ranges.filter((_, index) => index % 2 === 0);
  expect((await readAll(some)).map((each) => each.ok && each.line.at(1))).toEqual([0x30, 0x32, 0x34]);
});

test('each damaged range is a value with its reason, and the ones after it are read', async () => {
  const path = shardPath(folder, 'B1', 0);
  const bytes = readFileSync(path);
  bytes[3] = 0x58;
  writeFileSync(path, bytes);
  truncateSync(path, bytes.length - 100);
  rmSync(shardPath(folder, 'B1', 1));
  const [flipped, fine, , cut, gone] = await readAll(ranges);
  expect(flipped).toMatchObject({ ok: false, because: 'bytes 0 to 13 of shard 0 are not those that were committed (sha256)' });
  expect(fine?.ok).toBe(true);
  expect(cut).toMatchObject({ ok: false, because: expect.stringContaining('the file ends 100 bytes early') });
  expect(gone).toMatchObject({ ok: false, because: expect.stringContaining('the file ends 4 bytes early') });
});

test('a range that is not one line is damage', async () => {
  const [first, second] = ranges as [RecordRange, RecordRange];
  const [both] = await readAll([{ ...first, bytes: first.bytes + second.bytes }]);
  const [half] = await readAll([{ ...first, bytes: 4 }]);
  expect([both, half]).toMatchObject([
    { ok: false, because: expect.stringContaining('are not one line') },
    { ok: false, because: expect.stringContaining('are not one line') },
  ]);
});

test('committed bytes must be inside the file; a tail after them is nobody’s business', async () => {
  const bytes = readFileSync(shardPath(folder, 'B1', 0)).length;
  const explain = (number: number, committedBytes: number) =>
    explainShardLength(folder, { partition: 'B1', number, committedBytes });
  expect([await explain(0, bytes), await explain(0, bytes - 5)]).toEqual([undefined, undefined]);
  expect(await explain(1, 1_000)).toContain('has 4 bytes and the ledger has committed 1,000');
  expect(await explain(7, 1)).toContain('00007.jsonl is not there');
});
