/** Several files: their order, their pins, resumes across them, and what may change. */
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { AerieError } from '../base/errors.ts';
import { compareSource } from './compare-source.ts';
import { matchPattern } from './glob.ts';
import { openSource, type SourceBatch, type SourceOptions } from './open-source.ts';

const root = mkdtempSync(join(tmpdir(), 'aerie-files-'));
afterAll(() => rmSync(root, { recursive: true }));

let made = 0;
function makeFolder(files: Readonly<Record<string, readonly string[]>>): string {
  made += 1;
  const folder = join(root, `set-${made}`);
  for (const [name, prompts] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), prompts.map((prompt) => `${JSON.stringify({ prompt })}\n`).join(''));
  }
  return folder;
}

async function readAll(
  from: readonly string[],
  skipRows = 0,
  options: SourceOptions = {},
  mostPrompts = 1e9,
): Promise<SourceBatch[]> {
  const batches: SourceBatch[] = [];
  for await (const batch of (await openSource(from, options)).batches({ skipRows, mostPrompts })) batches.push(batch);
  return batches;
}
const contents = (batches: readonly SourceBatch[]) =>
  batches.flatMap(({ prompts }) => prompts.map(({ messages }) => messages[0]?.content));

test('patterns match as a shell does', () => {
  const matches = (pattern: string, path: string) => matchPattern(pattern)(path);
  for (const [pattern, yes, no] of [
    ['/d/*.jsonl', '/d/a.jsonl', '/d/e/a.jsonl'],
    ['/d/**/*.jsonl', '/d/e/f/a.jsonl', '/d/e/a.json'],
    ['/d/**/*.jsonl', '/d/a.jsonl', '/d/.git/a.jsonl'],
    ['/d/*.jsonl', '/d/é.jsonl', '/d/.a.jsonl'],
    ['/d/t-?.jsonl', '/d/t-1.jsonl', '/d/t-10.jsonl'],
    ['/d/t-[0-4].jsonl', '/d/t-4.jsonl', '/d/t-5.jsonl'],
    ['/d/t-[!0-4].jsonl', '/d/t-5.jsonl', '/d/t-4.jsonl'],
    ['/d/{a,b}.jsonl', '/d/b.jsonl', '/d/c.jsonl'],
    ['/d/a+(b).jsonl*', '/d/a+(b).jsonl', '/d/aab.jsonl'],
  ] as const) {
    expect([pattern, matches(pattern, yes), matches(pattern, no)]).toEqual([pattern, true, false]);
  }
});

test('a pattern and a list are read in order, rejections name file and line, and every row is a place to resume', async () => {
  const folder = makeFolder({ 'b.jsonl': ['3', '4'], 'a.jsonl': ['1', ' ', '2'], 'more/c.jsonl': ['5'] });
  const from = [join(folder, '*.jsonl'), join(folder, 'more', 'c.jsonl')];
  const whole = await readAll(from);
  expect(contents(whole)).toEqual(['1', '2', '3', '4', '5']);
  expect(whole[0]?.rejected).toMatchObject([{ row: 2, reason: 'empty-content', file: join(folder, 'a.jsonl') }]);
  const rows = ['1', undefined, '2', '3', '4', '5'];
  for (let skip = 0; skip <= 6; skip += 1) {
    const expected = rows.slice(skip).filter((row) => row !== undefined);
    for (const options of [{}, { pin: whole.at(-1)?.pin }].map((given) => given as SourceOptions)) {
      const rest = await readAll(from, skip, options);
      expect([skip, contents(rest), rest.at(-1)?.rows]).toEqual([skip, expected, 6]);
      expect(rest.at(-1)?.pin).toEqual(whole.at(-1)?.pin);
    }
  }
});

test('which files there are is pinned; those nobody has begun may change, those that were read may not', async () => {
  const folder = makeFolder({ 'a.jsonl': ['1', '2'], 'b.jsonl': ['3'] });
  const from = [join(folder, '*.jsonl')];
  const pin = (await readAll(from, 0, {}, 1)).at(-1)?.pin;
  if (pin === undefined) throw new Error('no batch');
  expect(await compareSource(pin, from)).toBeUndefined();
  writeFileSync(join(folder, 'b.jsonl'), '{"prompt":"changed before it was read"}\n');
  expect(await compareSource(pin, from)).toBeUndefined();
  writeFileSync(join(folder, 'c.jsonl'), '');
  expect(await compareSource(pin, from)).toMatchObject({ what: 'appeared', path: join(folder, 'c.jsonl') });
  rmSync(join(folder, 'c.jsonl'));
  rmSync(join(folder, 'b.jsonl'));
  expect(await compareSource(pin, from)).toMatchObject({ what: 'missing', path: join(folder, 'b.jsonl') });
  writeFileSync(join(folder, 'b.jsonl'), '{"prompt":"3"}\n');
  writeFileSync(join(folder, 'a.jsonl'), '{"prompt":"7"}\n{"prompt":"2"}\n');
  utimesSync(join(folder, 'a.jsonl'), 1, 1);
  expect(await compareSource(pin, from)).toMatchObject({ what: 'changed', path: join(folder, 'a.jsonl') });
});

test('a pattern without a match, and a file of another format among the matches, are refused', async () => {
  const folder = makeFolder({ 'a.jsonl': ['1'], 'notes.txt': ['x'] });
  const errorOf = async (from: string) => {
    const thrown: unknown = await readAll([from]).catch((error: unknown) => error);
    return thrown instanceof AerieError ? [thrown.code, thrown.message] : thrown;
  };
  expect(await errorOf(join(folder, '*.csv'))).toEqual(['source.missing', expect.stringContaining('No file matches')]);
  expect(await errorOf(join(folder, '*'))).toEqual(['source.unreadable', expect.stringContaining('notes.txt')]);
  expect(await errorOf(join(root, 'none', '*.jsonl'))).toEqual(['source.missing', expect.anything()]);
});

test('a file whose name holds the characters of a pattern is that file', async () => {
  const folder = makeFolder({ 'a[1].jsonl': ['literal'], 'a1.jsonl': ['match'] });
  expect(contents(await readAll([join(folder, 'a[1].jsonl')]))).toEqual(['literal']);
});
