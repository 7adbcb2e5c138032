/** Parquet as other programs compress and nest it: each codec reads, and what is damaged or not readable is named. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { parquetWriteFile } from 'hyparquet-writer';
import { afterAll, expect, test } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import { AerieError } from '../base/errors.ts';
import { openSource, type SourceBatch } from './open-source.ts';
import { readParquetRows } from './parquet-rows.ts';

const folder = mkdtempSync(join(tmpdir(), 'aerie-parquet-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** A Zstandard frame of raw blocks: magic, one segment with its size in four bytes, blocks of at most 64 KiB. */
function zstd(input: Uint8Array): Uint8Array {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(input.length);
  const parts: Uint8Array[] = [Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0xa0]), size];
  for (let at = 0, isLast = false; !isLast; at += 65_536) {
    const block = input.subarray(at, at + 65_536);
    isLast = at + 65_536 >= input.length;
    const head = (block.length << 3) | (isLast ? 1 : 0);
    parts.push(Buffer.from([head & 255, (head >> 8) & 255, head >> 16]), block);
  }
  return Buffer.concat(parts);
}

/** An LZ4 block of one run of literals. */
function lz4(input: Uint8Array): Uint8Array {
  const head = [Math.min(15, input.length) << 4];
  for (let rest = input.length - 15; rest >= 0; rest -= 255) head.push(Math.min(255, rest));
  return Buffer.concat([Buffer.from(head), input]);
}

/** As Hadoop wraps it: both lengths before the block. */
function lz4Hadoop(input: Uint8Array): Uint8Array {
  const block = lz4(input);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(input.length, 0);
  head.writeUInt32BE(block.length, 4);
  return Buffer.concat([head, block]);
}

const CODECS = {
  UNCOMPRESSED: (input: Uint8Array) => input,
  SNAPPY: undefined, // the writer has this one
  GZIP: (input: Uint8Array) => new Uint8Array(gzipSync(input)),
  BROTLI: (input: Uint8Array) => new Uint8Array(brotliCompressSync(input)),
  ZSTD: zstd,
  LZ4_RAW: lz4,
  LZ4: lz4Hadoop,
  LZO: (input: Uint8Array) => input,
} as const;
type Codec = keyof typeof CODECS;
const READABLE = Object.keys(CODECS).filter((codec) => codec !== 'LZO') as Codec[];

const questions = Array.from({ length: 3000 }, (_, at) => `question ${at % 700}, é😀 ${'x'.repeat(at % 90)}`);

function writeIn(codec: Codec, name = `${codec}.parquet`): string {
  const filename = join(folder, name);
  const compress = CODECS[codec];
  parquetWriteFile({
    ...{ filename, codec, rowGroupSize: 1000, pageSize: 20_000 },
    ...(compress === undefined ? {} : { compressors: { [codec]: compress } }),
    columnData: [
      { name: 'prompt', data: questions, type: 'STRING' },
      { name: 'n', data: questions.map((_, at) => BigInt(at)), type: 'INT64' },
    ],
  });
  return filename;
}

async function readAll(path: string): Promise<SourceBatch[]> {
  const batches: SourceBatch[] = [];
  for await (const batch of (await openSource([path])).batches({ skipRows: 0 })) batches.push(batch);
  return batches;
}

const contents = (batches: readonly SourceBatch[]) =>
  batches.flatMap(({ prompts }) => prompts.map(({ messages }) => messages.map(({ content }) => content).join(' / ')));

test.each(READABLE)('%s reads', async (codec) => {
  expect(contents(await readAll(writeIn(codec)))).toEqual(questions);
});

test('a codec that is not read is named', async () => {
  const thrown: unknown = await readAll(writeIn('LZO')).catch((error: unknown) => error);
  expect(thrown).toMatchObject({ code: 'source.unreadable', detail: { because: expect.stringContaining('LZO') } });
});

const OPTIONAL = { repetition_type: 'OPTIONAL' } as const;
const TEXT = { type: 'BYTE_ARRAY', converted_type: 'UTF8', ...OPTIONAL } as const;

test('lists of structs with nulls at every level, dates and integers of 64 bits beside them', async () => {
  const filename = join(folder, 'nested.parquet');
  parquetWriteFile({
    filename,
    schema: [
      { name: 'root', num_children: 4 },
      { name: 'messages', ...OPTIONAL, num_children: 1, converted_type: 'LIST' },
      { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
      { name: 'element', ...OPTIONAL, num_children: 3 },
      { name: 'role', ...TEXT },
      { name: 'content', ...TEXT },
      { name: 'score', type: 'INT64', ...OPTIONAL },
      { name: 'when', type: 'INT64', converted_type: 'TIMESTAMP_MILLIS', ...OPTIONAL },
      { name: 'big', type: 'INT64', ...OPTIONAL },
      { name: 'prompt', ...TEXT },
    ],
    columnData: [
      {
        name: 'messages',
        data: [
          [
            { role: 'user', content: 'a', score: 1n },
            { role: 'assistant', content: null, score: null },
            { role: 'user', content: 'b', score: 2n ** 62n },
          ],
          ...[null, [], [null], [{ role: 'user', content: 'c', score: null }], [{ role: 'user', content: null, score: 0n }]],
        ],
      },
      { name: 'when', data: [new Date(0), null, new Date(8e15), new Date(1), new Date(2), null] },
      { name: 'big', data: [2n ** 63n - 1n, -(2n ** 63n), null, 0n, 1n, 2n] },
      { name: 'prompt', data: ['x', 'y', null, null, 'z', null] },
    ],
  });
  const batches = await readAll(filename);
  expect(contents(batches)).toEqual(['a / b', 'y', 'c']);
  expect(batches.flatMap(({ rejected }) => rejected.map(({ row, reason }) => `${row} ${reason}`))).toEqual([
    ...['3 no-user-turn', '4 unknown-shape', '6 empty-content'],
  ]);
});

test('whatever bytes of a file of any codec are changed, it reads or is unreadable by name', async () => {
  const files = READABLE.map((codec) => readFileSync(writeIn(codec)));
  const change = fc.record({ at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), value: fc.nat(255) });
  // The footer, which says what to allocate, is a twentieth of the file: half of the changes go there.
  const place = fc.tuple(change, fc.boolean());
  await fc.assert(
    fc.asyncProperty(fc.nat(files.length - 1), fc.array(place, { minLength: 1, maxLength: 8 }), async (which, changes) => {
      const changed = Uint8Array.from(files[which] as Buffer);
      for (const [{ at, value }, isInFooter] of changes) {
        const from = isInFooter ? Math.floor(changed.length * 0.95) : 0;
        changed[from + Math.floor(at * (changed.length - from))] = value;
      }
      const path = join(folder, 'changed.parquet');
      writeFileSync(path, changed);
      try {
        // Decoding that takes seconds has no end.
        const reader = readParquetRows({ path, bytes: changed.length, columns: ['prompt'], signal: undefined }, 10_000);
        for await (const _ of reader.rows(0));
      } catch (thrown) {
        if (!(thrown instanceof AerieError)) throw thrown;
      }
    }),
    { numRuns: runs(60) },
  );
});

test('a page that promises values without number is given up, and the run goes on meanwhile', async () => {
  const path = join(folder, 'endless.parquet');
  const whole = readFileSync(writeIn('UNCOMPRESSED'));
  // The header of a page of a thousand values without nulls: their number goes on into the bytes behind it.
  const at = whole.indexOf(Buffer.from([0x15, 0xd0, 0x0f, 0x15, 0x00, 0x15, 0xd0, 0x0f]));
  expect(at).toBeGreaterThan(0);
  whole[at + 2] = 0xef;
  writeFileSync(path, whole);
  let turns = 0;
  const beat = setInterval(() => (turns += 1), 50);
  const reader = readParquetRows({ path, bytes: whole.length, columns: ['prompt', 'n'], signal: undefined }, 1_500);
  const read = (async () => {
    for await (const _ of reader.rows(0));
  })();
  await expect(read).rejects.toMatchObject({ code: 'source.unreadable', message: expect.stringContaining('did not end in 2 s') });
  clearInterval(beat);
  expect(turns).toBeGreaterThan(5);
});
