import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import { type LineReader, openLineReader } from './line-reader.ts';

let folder: string;
let path: string;
let reader: LineReader;
let committed: number;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aerie-lines-'));
  path = join(folder, 'prompts.jsonl');
  committed = Number.MAX_SAFE_INTEGER;
  reader = openLineReader(path, () => committed);
});
afterEach(async () => {
  await reader.close();
  rmSync(folder, { recursive: true });
});

/** Lines of many lengths, some longer than a window, with their places. */
function makeLines(count: number): { text: string; offset: number; bytes: number }[] {
  let offset = 0;
  return Array.from({ length: count }, (_, nth) => {
    const text = `${nth} – ${'é'.repeat(nth % 50 === 49 ? 50_000 : (nth * 37) % 300)}\n`;
    const line = { text, offset, bytes: Buffer.byteLength(text) };
    offset += line.bytes;
    return line;
  });
}

test('any lines in any order, one by one or at once, are the lines of the file', async () => {
  const lines = makeLines(400);
  writeFileSync(path, lines.map(({ text }) => text).join(''));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(lines.length - 1), { maxLength: 60 }), fc.boolean(), async (picked, atOnce) => {
      const wanted = picked.map((nth) => lines[nth] ?? { text: '', offset: 0, bytes: 0 });
      const reads = atOnce ? await Promise.all(wanted.map(({ offset, bytes }) => reader.read(offset, bytes))) : [];
      if (!atOnce) for (const { offset, bytes } of wanted) reads.push(await reader.read(offset, bytes));
      expect(reads).toEqual(wanted.map(({ text }) => text));
    }),
    { numRuns: runs(30) },
  );
});

test('a line that was written after its neighbours were read is read too', async () => {
  writeFileSync(path, 'one\n');
  expect(await reader.read(0, 4)).toBe('one\n');
  appendFileSync(path, 'two\n');
  expect(await reader.read(4, 4)).toBe('two\n');
});

test('the torn tail of a killed worker is not kept: it is cut and written anew by another hand', async () => {
  committed = 4;
  writeFileSync(path, 'one\n\xff\xff\xff\xff');
  expect(await reader.read(0, 4)).toBe('one\n');
  writeFileSync(path, 'one\ntwo\n');
  committed = 8;
  expect(await reader.read(4, 4)).toBe('two\n');
});

test('a file that ends before the line is damage, and one that is not there says so', async () => {
  await expect(reader.read(0, 4)).rejects.toMatchObject({ name: 'AerieError' });
  await reader.close();
  writeFileSync(path, 'one\n');
  reader = openLineReader(path, () => committed);
  await expect(reader.read(0, 9)).rejects.toMatchObject({ code: 'ledger.damaged' });
  expect(await reader.read(0, 4)).toBe('one\n');
});
