import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import type { Line } from './split-lines.ts';
import { createLineSplitter, MOST_LINE_BYTES, splitLines } from './split-lines.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

async function collect(chunks: readonly Uint8Array[], mostLineBytes?: number): Promise<Line[]> {
  async function* source(): AsyncGenerator<Uint8Array> {
    yield* chunks;
  }
  const lines: Line[] = [];
  for await (const group of splitLines(source(), mostLineBytes)) lines.push(...group);
  return lines;
}

/** The same rule, written the slow and obvious way. */
function splitNaively(whole: Uint8Array, most: number): unknown[] {
  const rows: number[][] = [[]];
  for (const byte of whole) byte === 0x0a ? rows.push([]) : rows.at(-1)?.push(byte);
  if (rows.at(-1)?.length === 0) rows.pop();
  return rows.map((stored, i) => {
    const number = i + 1;
    if (stored.length > most) return { kind: 'too-long', number, byteLength: stored.length };
    const row = [...stored];
    if (row.at(-1) === 0x0d) row.pop();
    if (number === 1 && row[0] === 0xef && row[1] === 0xbb && row[2] === 0xbf) row.splice(0, 3);
    const place = { number, byteLength: row.length };
    return row.every((byte) => byte === 32 || byte === 9) ? { kind: 'blank', ...place } : { kind: 'text', ...place, bytes: row };
  });
}

const plain = (line: Line): unknown => {
  if (line.kind === 'text') return { ...line, bytes: [...line.bytes] };
  return { kind: line.kind, number: line.number, byteLength: line.byteLength };
};

test('any chunking of any bytes gives the lines of a naive split', async () => {
  const byte = fc.oneof(fc.constantFrom(0x0a, 0x0a, 0x0d, 0x20, 0x09, 0xef, 0xbb, 0xbf, 0x61), fc.integer({ min: 0, max: 255 }));
  const chunks = fc.array(fc.array(byte, { maxLength: 12 }), { maxLength: 12 });
  const hasMark = fc.boolean();
  await fc.assert(
    fc.asyncProperty(chunks, hasMark, fc.constantFrom(3, 8, 1000), async (parts, marked, most) => {
      const all = (marked ? [[0xef], [0xbb, 0xbf], ...parts] : parts).map((part) => Uint8Array.from(part));
      const lines = await collect(all, most);
      expect(lines.map(plain)).toEqual(splitNaively(Buffer.concat(all), most));
    }),
    { numRuns: runs(500) },
  );
});

test('CRLF, blank lines and a missing final newline', async () => {
  const lines = await collect([bytesOf('{"a":1}\r\n\r\n  \t\n{"b":'), bytesOf('2}')]);
  expect(lines.map((line) => [line.kind, line.number, line.byteLength])).toEqual([
    ['text', 1, 7],
    ['blank', 2, 0],
    ['blank', 3, 3],
    ['text', 4, 7],
  ]);
  expect(await collect([])).toEqual([]);
  expect((await collect([bytesOf('\n')])).map((line) => line.kind)).toEqual(['blank']);
});

test('a byte order mark is taken off at the start of the file only', async () => {
  const lines = await collect([Uint8Array.of(0xef, 0xbb), Uint8Array.of(0xbf, 0x61, 0x0a, 0xef, 0xbb, 0xbf, 0x62)]);
  expect(lines.map((line) => line.kind === 'text' && [...line.bytes])).toEqual([[0x61], [0xef, 0xbb, 0xbf, 0x62]]);
});

test('a line of 50 MB is looked at once and copied at most three times', () => {
  const chunkBytes = 64 * 1024;
  const chunkCount = 800; // 52 MB
  const splitter = createLineSplitter();
  let scannedBytes = 0;
  const chunk = new Uint8Array(chunkBytes).fill(0x61);
  chunk.indexOf = (byte, from = 0) => {
    const at = Uint8Array.prototype.indexOf.call(chunk, byte, from);
    scannedBytes += (at === -1 ? chunk.length : at + 1) - from;
    return at;
  };
  for (let i = 0; i < chunkCount; i += 1) expect(splitter.push(chunk)).toEqual([]);
  const [line] = splitter.push(bytesOf('\n'));
  expect(line).toMatchObject({ kind: 'text', number: 1, byteLength: chunkBytes * chunkCount });
  expect(scannedBytes).toBe(chunkBytes * chunkCount);
  expect(splitter.copiedBytes).toBeLessThanOrEqual(3 * chunkBytes * chunkCount);
});

test('one byte at a time is linear too', () => {
  const splitter = createLineSplitter();
  const length = 200_000;
  for (let i = 0; i < length; i += 1) splitter.push(Uint8Array.of(0x61));
  expect(splitter.end()).toMatchObject([{ kind: 'text', byteLength: length }]);
  expect(splitter.copiedBytes).toBeLessThanOrEqual(3 * length);
});

test('a line above the limit is counted, not held, and the next line is whole', () => {
  const splitter = createLineSplitter();
  const chunk = new Uint8Array(2 ** 20).fill(0x62);
  const chunkCount = MOST_LINE_BYTES / 2 ** 20 + 200;
  for (let i = 0; i < chunkCount; i += 1) splitter.push(chunk);
  // Nothing of the last 200 MiB was kept.
  expect(splitter.copiedBytes).toBeLessThanOrEqual(3 * MOST_LINE_BYTES);
  const [long, next] = splitter.push(bytesOf('\n{"c":3}\n'));
  expect(long).toMatchObject({ kind: 'too-long', number: 1, byteLength: chunkCount * 2 ** 20 });
  expect(long?.kind === 'too-long' && long.start.length).toBe(800);
  expect(next).toMatchObject({ kind: 'text', number: 2, bytes: bytesOf('{"c":3}') });
});

test('a line of exactly the limit is read, one byte more is not', async () => {
  expect((await collect([bytesOf('abcd\nabcde\nab'), bytesOf('cd\nabc'), bytesOf('de')], 4)).map((line) => line.kind)).toEqual([
    'text',
    'too-long',
    'text',
    'too-long',
  ]);
});
