/** Every format gives the rows that lines of JSON give, resumes at any row, and is refused by name where it is not what it says. */
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { parquetWriteFile } from 'hyparquet-writer';
import { afterAll, expect, test } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import { AerieError } from '../base/errors.ts';
import { readCsvRows } from './csv-rows.ts';
import { type BatchRequest, openSource, type SourceBatch, type SourceOptions } from './open-source.ts';
import { readParquetRows } from './parquet-rows.ts';
import { JsonSplitter } from './split-json.ts';

const folder = mkdtempSync(join(tmpdir(), 'aerie-formats-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function write(content: string | Uint8Array, suffix: string): string {
  files += 1;
  const path = join(folder, `source-${files}${suffix}`);
  writeFileSync(path, content);
  return path;
}

async function readAll(
  from: string | readonly string[],
  request: BatchRequest = { skipRows: 0 },
  options: SourceOptions = {},
): Promise<SourceBatch[]> {
  const source = await openSource(typeof from === 'string' ? [from] : from, options);
  const batches: SourceBatch[] = [];
  for await (const batch of source.batches(request)) batches.push(batch);
  return batches;
}

const contents = (batches: readonly SourceBatch[]) =>
  batches.flatMap(({ prompts }) => prompts.map(({ messages }) => messages.map(({ content }) => content).join(' / ')));
const refused = (batches: readonly SourceBatch[]) =>
  batches.flatMap(({ rejected }) => rejected.map(({ row, reason }) => `${row} ${reason}`));

async function errorOf(work: Promise<unknown>): Promise<AerieError> {
  const thrown: unknown = await work.catch((error: unknown) => error);
  if (!(thrown instanceof AerieError)) throw new Error(`expected an AerieError, got ${String(thrown)}`);
  return thrown;
}

/** Rows that the formats can all hold; every seventh is refused. */
const questions = Array.from({ length: 1300 }, (_, at) => (at % 7 === 3 ? ' ' : `question ${at}, "quoted"\nand more é😀`));
const csvField = (text: string) => `"${text.replaceAll('"', '""')}"`;

function everyFormat(): Readonly<Record<string, string>> {
  const rows = questions.map((prompt) => ({ prompt, n: 1 }));
  const parquet = write('', '.parquet');
  parquetWriteFile({
    filename: parquet,
    columnData: [
      { name: 'n', data: rows.map(({ n }) => n), type: 'INT32' },
      { name: 'prompt', data: questions, type: 'STRING' },
    ],
    rowGroupSize: 300,
  });
  const csv = `\ufeffn,prompt\r\n${questions.map((text) => `1,${csvField(text)}\r\n`).join('')}`;
  const json = JSON.stringify(rows, undefined, 1);
  return {
    lines: write(rows.map((row) => JSON.stringify(row)).join('\n'), '.jsonl'),
    json: write(json, '.json'),
    'json under data': write(`{"about": {"rows": [1, "data"]}, "data": ${json}, "more": []}\n`, '.JSON'),
    'json gzip': write(gzipSync(json), '.json.gz'),
    csv: write(csv, '.csv'),
    'csv gzip': write(gzipSync(csv), '.csv.gz'),
    parquet,
  };
}

test('every format gives the same prompts and refusals, and resumes at any row', async () => {
  const formats = everyFormat();
  const expected = await readAll(formats['lines'] ?? '');
  expect(contents(expected)).toHaveLength(1300 - 186);
  for (const [name, path] of Object.entries(formats)) {
    const whole = await readAll(path);
    expect([name, contents(whole)]).toEqual([name, contents(expected)]);
    expect([name, refused(whole)]).toEqual([name, refused(expected)]);
    const stored = readFileSync(path);
    expect(whole.at(-1)).toMatchObject({ rows: 1300, ended: true, pin: { path, bytes: stored.length } });
    for (const { pin } of whole) {
      expect(pin.sha256).toBe(createHash('sha256').update(stored.subarray(0, pin.hashedBytes)).digest('hex'));
    }
    for (const skipRows of [1, 299, 300, 512, 777, 1299, 1300]) {
      const rest = await readAll(path, { skipRows });
      const tail = [...contents(await readAll(formats['lines'] ?? '', { skipRows }))];
      expect([name, skipRows, contents(rest)]).toEqual([name, skipRows, tail]);
      expect(rest.at(-1)).toMatchObject({ rows: 1300, ended: true, pin: whole.at(-1)?.pin });
    }
    const first = await readAll(path, { skipRows: 0, mostPrompts: 10 });
    expect([name, contents(first)]).toEqual([name, contents(expected).slice(0, 10)]);
    expect(first.at(-1)).toMatchObject({ rows: 12, ended: false });
  }
});

test('Parquet: lists and structs, numbers of 64 bits, absent columns, every codec', async () => {
  const messages = [
    { role: 'user', content: 'a', name: null },
    { role: 'assistant', content: 'b', name: null },
  ];
  for (const codec of ['UNCOMPRESSED', 'SNAPPY'] as const) {
    const path = write('', '.parquet');
    parquetWriteFile({
      filename: path,
      codec,
      columnData: [
        { name: 'id', data: [1n, 2n ** 60n], type: 'INT64' },
        { name: 'messages', data: [messages, [{ role: 'user', content: 'c', name: null }]] },
      ],
    });
    expect(contents(await readAll(path))).toEqual(['a', 'c']);
  }
  const other = write('', '.parquet');
  parquetWriteFile({ filename: other, columnData: [{ name: 'text', data: ['x'], type: 'STRING' }] });
  const [batch] = await readAll(other);
  expect(batch?.rejected).toMatchObject([
    { row: 1, reason: 'unknown-shape', detail: 'its keys are text', excerpt: '{"text":"x"}' },
  ]);
});

test('Parquet that is cut, changed or something else is unreadable, never a crash', async () => {
  const whole = readFileSync(everyFormat()['parquet'] ?? '');
  for (const cut of [0, 3, 4, 11, whole.length >> 1, whole.length - 1]) {
    expect((await errorOf(readAll(write(whole.subarray(0, cut), '.parquet')))).code).toBe('source.unreadable');
  }
  expect((await errorOf(readAll(write('{"prompt":"a"}\n', '.parquet')))).message).toContain('do not begin with PAR1');
  expect((await errorOf(readAll(write(whole, '.jsonl')))).detail.remedy).toContain('.parquet');
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 1), fc.nat(255), async (at, value) => {
      const changed = Uint8Array.from(whole);
      changed[at] = value;
      try {
        const file = { path: write(changed, '.parquet'), bytes: changed.length, columns: ['prompt'], signal: undefined };
        // Decoding that takes seconds has no end.
        for await (const _ of readParquetRows(file, 10_000).rows(0));
      } catch (thrown) {
        if (!(thrown instanceof AerieError)) throw thrown;
      }
    }),
    { numRuns: runs(60) },
  );
});

test('Parquet text that is not UTF-8 is refused, never replaced', async () => {
  const path = write('', '.parquet');
  parquetWriteFile({
    filename: path,
    columnData: [{ name: 'prompt', data: [new Uint8Array([0x61]), new Uint8Array([0xff, 0x61])], type: 'BYTE_ARRAY' }],
  });
  const batches = await readAll(path);
  expect([contents(batches), refused(batches)]).toEqual([['a'], ['2 bad-utf8']]);
});

test('CSV: ragged rows, bad UTF-8, stray quotes and empty lines are named with their row and never stop the others', async () => {
  const text = Buffer.concat([
    Buffer.from('prompt,system\nplain,\n\na,b,c\n"two\nlines, one field",be brief\nonly\n'),
    Buffer.from([0xff]),
    Buffer.from(',\nsays "hi" loudly,\n"he said ""no""",\n'),
  ]);
  const batches = await readAll(write(text, '.csv'));
  expect(contents(batches)).toEqual(['plain', 'be brief / two\nlines, one field', 'says "hi" loudly', 'he said "no"']);
  expect(refused(batches)).toEqual(['2 ragged-row', '4 ragged-row', '5 bad-utf8']);
  expect(batches[0]?.rejected[0]).toMatchObject({ detail: 'the row has 3 fields, the header 2', excerpt: 'a,b,c' });
});

test('CSV whose quote never closes, or whose header names a column twice, is unreadable', async () => {
  const open = await errorOf(readAll(write('prompt\na\n"b\nc\n', '.csv')));
  expect([open.code, open.detail.because]).toEqual(['source.unreadable', expect.stringContaining('does not close')]);
  expect((await errorOf(readAll(write('a,a\n1,2\n', '.csv')))).detail.because).toContain('twice');
  const long = readCsvRows(
    (async function* () {
      for (let at = 0; at < 40; at += 1) yield Buffer.from(at === 0 ? 'prompt\n"' : 'x'.repeat(100));
    })(),
    2000,
  );
  await expect(
    (async () => {
      for await (const _ of long);
    })(),
  ).rejects.toThrow('longer than');
});

test('CSV does not depend on how it is cut into chunks', async () => {
  const text = Buffer.from('prompt,b\r\n"a ""é""\r\n😀",1\nx,2\r\n');
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }), async (sizes) => {
      async function* chunks() {
        for (let at = 0, nth = 0; at < text.length; nth += 1) {
          const end = at + (sizes[nth % sizes.length] ?? 1);
          yield text.subarray(at, end);
          at = end;
        }
      }
      const rows: unknown[] = [];
      for await (const group of readCsvRows(chunks()))
        rows.push(...group.map((row) => ({ ...(row.kind === 'value' ? (row.value as object) : {}) })));
      expect(rows).toEqual([
        { prompt: 'a "é"\r\n😀', b: '1' },
        { prompt: 'x', b: '2' },
      ]);
    }),
  );
});

test('a JSON list that is cut, is no list, or has something behind it is unreadable, after the rows before', async () => {
  const list = JSON.stringify(questions.map((prompt) => ({ prompt })));
  const wrong: readonly (readonly [string, string])[] = [
    [list.slice(0, -1), 'ends before its list does'],
    [list.slice(0, list.length >> 1), 'ends before its list does'],
    ['{"data": [{"prompt":"a"}]', 'ends before its list does'],
    [`${list} {}`, 'follows the end'],
    ['{"prompt":"a"}\n{"prompt":"b"}\n', 'not one list of rows'],
    ['{"prompt":"a"}', 'not one list of rows'],
    ['"text"', 'not one list of rows'],
    ['12', 'not one list of rows'],
    ['', 'nothing in it'],
    [' \n', 'nothing in it'],
  ];
  for (const [text, because] of wrong) {
    const error = await errorOf(readAll(write(text, '.json')));
    expect([text.slice(0, 30), error.code, error.detail.because]).toEqual([
      text.slice(0, 30),
      'source.unreadable',
      expect.stringContaining(because),
    ]);
  }
  expect(contents(await readAll(write('[]', '.json')))).toEqual([]);
  const odd = await readAll(write('[{"prompt":"a"}, , 7, {"prompt":"]},{\\""}, {"prompt" "b"}, [{"prompt":"c"}]]', '.json'));
  expect(contents(odd)).toEqual(['a', ']},{"']);
  expect(refused(odd)).toEqual(['2 not-json', '3 not-an-object', '5 not-json', '6 not-an-object']);
});

test('a JSON list is split the same however it is chunked, and holds no more of an entry than it may', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue({ maxDepth: 3 })), fc.integer({ min: 1, max: 40 }), (values, size) => {
      const bytes = Buffer.from(` ${JSON.stringify(values)}\n`);
      const splitter = new JsonSplitter();
      const seen: unknown[] = [];
      for (let at = 0; at < bytes.length; at += size) {
        for (const line of splitter.push(bytes.subarray(at, at + size))) {
          if (line.kind === 'text') seen.push(JSON.parse(Buffer.from(line.bytes).toString()));
        }
      }
      expect([seen, splitter.end()]).toEqual([JSON.parse(JSON.stringify(values)), undefined]);
    }),
  );
  const small = new JsonSplitter(100);
  const long = `[{"a":"${'x'.repeat(5000)}"},{"b":1}]`;
  const lines = [...long].flatMap((character) => small.push(Buffer.from(character)));
  expect(lines).toMatchObject([
    { kind: 'too-long', number: 1, byteLength: 5008 },
    { kind: 'text', number: 2 },
  ]);
});

test('a cell of 50 MB is a row like any other, and one above 64 MiB is refused by name', async () => {
  const cell = 'x'.repeat(50_000_000);
  for (const path of [write(`[{"prompt":"${cell}"},{"prompt":"a"}]`, '.json'), write(`prompt\n"${cell}"\na\n`, '.csv')]) {
    expect(contents(await readAll(path)).map(({ length }) => length)).toEqual([50_000_000, 1]);
  }
  const tooLong = write(`[{"prompt":"${'x'.repeat(65 * 2 ** 20)}"},{"prompt":"a"}]`, '.json');
  const batches = await readAll(tooLong);
  expect([contents(batches), refused(batches)]).toEqual([['a'], ['1 too-long-line']]);
});
