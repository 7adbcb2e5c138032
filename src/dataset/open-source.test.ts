import { createHash } from 'node:crypto';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import { AerieError } from '../base/errors.ts';
import { countTurns } from '../shard/walk-conversation.ts';
import { compareSource } from './compare-source.ts';
import type { BatchRequest, SourceBatch } from './open-source.ts';
import { openSource } from './open-source.ts';
import { sourceDiffers } from './source-differs.ts';
import type { SourcePin } from './source-pin.ts';

const folder = mkdtempSync(join(tmpdir(), 'aerie-dataset-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function write(content: string | Uint8Array, suffix = '.jsonl'): string {
  files += 1;
  const path = join(folder, `source-${files}${suffix}`);
  writeFileSync(path, content);
  return path;
}

async function readAll(path: string, request: BatchRequest = { skipRows: 0 }): Promise<SourceBatch[]> {
  const source = await openSource([path]);
  const batches: SourceBatch[] = [];
  for await (const batch of source.batches(request)) batches.push(batch);
  return batches;
}

const contents = (batches: readonly SourceBatch[]) =>
  batches.flatMap((batch) => batch.prompts.map((prompt) => prompt.messages[0]?.content));
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
const numbered = (count: number, from = 0) =>
  Array.from({ length: count }, (_, i) => `${JSON.stringify({ prompt: `question ${from + i}` })}\n`).join('');

async function errorOf(work: Promise<unknown>): Promise<AerieError> {
  const thrown: unknown = await work.catch((error: unknown) => error);
  if (!(thrown instanceof AerieError)) throw new Error(`expected an AerieError, got ${String(thrown)}`);
  return thrown;
}

test('rows of one and two turns become prompts, in order', async () => {
  const path = write(
    [
      { question_id: 1, category: 'writing', turns: ['Draft a note to a neighbour about the hedge.', 'Now make it rhyme.'] },
      { question_id: 2, category: 'translation', turns: ['Translate to English: Der Fluss ist über die Ufer getreten.'] },
      { question_id: 3, category: 'math', turns: ['What is 17 * 23?', 'Divide that by 4.'], reference: ['391', '97.75'] },
    ]
      .map((row) => JSON.stringify(row))
      .join('\n'),
  );
  const [batch, ...more] = await readAll(path);
  expect(more).toEqual([]);
  expect(batch).toMatchObject({ rows: 3, ended: true, rejected: [] });
  expect(batch?.prompts.map(({ messages }) => countTurns(messages))).toEqual([2, 1, 2]);
  const stored = readFileSync(path);
  expect(batch?.pin).toMatchObject({ path, bytes: stored.length, hashedBytes: stored.length, sha256: sha256(stored) });
});

test('bad rows are named with their line and never stop the others', async () => {
  const bytes = Buffer.concat([
    Buffer.from('\ufeff{"prompt":"a"}\r\n\r\nnot json \u001b[31m\r\n{"prompt":"'),
    Buffer.of(0xff),
    Buffer.from('"}\r\n{"prompt":"b"}'),
  ]);
  const batches = await readAll(write(bytes, '.NDJSON'));
  expect(contents(batches)).toEqual(['a', 'b']);
  expect(batches[0]?.rows).toBe(5);
  expect(batches[0]?.rejected).toMatchObject([
    { row: 3, reason: 'not-json', excerpt: 'not json  [31m' },
    { row: 4, reason: 'bad-utf8', excerpt: '{"prompt":"\ufffd"}' },
  ]);
});

test('batches have at most 512 rows or a little over 4 MiB, and each pin hashes a prefix that covers its rows', async () => {
  const path = write(numbered(1300) + `${JSON.stringify({ prompt: 'x'.repeat(5 * 2 ** 20) })}\n`.repeat(2) + numbered(3, 1300));
  const stored = readFileSync(path);
  const batches = await readAll(path);
  expect(batches.map((batch) => batch.rows)).toEqual([512, 1024, 1301, 1302, 1305]);
  expect(batches.map((batch) => batch.ended)).toEqual([false, false, false, false, true]);
  for (const { pin } of batches) expect(pin.sha256).toBe(sha256(stored.subarray(0, pin.hashedBytes)));
  expect(batches.at(-1)?.pin.hashedBytes).toBe(stored.length);
});

test('an empty file ends at once', async () => {
  expect(await readAll(write(''))).toMatchObject([{ prompts: [], rejected: [], rows: 0, ended: true, pin: { hashedBytes: 0 } }]);
});

test('skipRows gives the rows of the tail, and mostPrompts stops at the row that gave the last', async () => {
  const path = write(`${numbered(700)}\nbad\n${numbered(700, 700)}`);
  const all = contents(await readAll(path));
  const whole = (await readAll(path)).at(-1);
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 1500 }), fc.integer({ min: 1, max: 1500 }), async (skipRows, mostPrompts) => {
      const head = await readAll(path, { skipRows: 0, mostPrompts });
      expect(contents(head)).toEqual(all.slice(0, mostPrompts));
      const rest = await readAll(path, { skipRows: head.at(-1)?.rows ?? 0 });
      expect(contents(rest)).toEqual(all.slice(mostPrompts));
      const tail = await readAll(path, { skipRows });
      expect(contents(tail)).toEqual(skipRows < 700 ? all.slice(skipRows) : all.slice(Math.max(700, skipRows - 2)));
      expect(tail.at(-1)).toMatchObject({ rows: 1402, ended: true, pin: whole?.pin });
    }),
    { numRuns: runs(20) },
  );
  expect(await readAll(path, { skipRows: 0, mostPrompts: 0 })).toEqual([]);
});

test('gzip of one and of several members, by name or by its first bytes; the stored bytes are hashed', async () => {
  const members = [numbered(600), '{"prompt":"cut in ', 'two members"}\n', '', numbered(600, 600)];
  const stored = Buffer.concat(members.map((member) => gzipSync(member)));
  for (const suffix of ['.jsonl.gz', '.jsonl']) {
    const batches = await readAll(write(stored, suffix));
    expect(contents(batches)).toEqual(contents(await readAll(write(members.join('')))));
    expect(batches.at(-1)?.pin).toMatchObject({ sha256: sha256(stored), hashedBytes: stored.length, bytes: stored.length });
  }
});

test('members that end where a read ends are all read', async () => {
  // Stored (level 0) members of exactly one and two reads of 256 KiB: the rows fill them up to the byte.
  const member = (bytes: number): Buffer => {
    for (let length = bytes - 200; ; length += 1) {
      const stored = gzipSync(`${JSON.stringify({ prompt: 'y'.repeat(length) })}\n`, { level: 0 });
      if (stored.length === bytes) return stored;
    }
  };
  const stored = Buffer.concat([member(2 ** 18), member(2 ** 19), member(2 ** 18), gzipSync(numbered(1))]);
  expect(contents(await readAll(write(stored, '.jsonl.gz')))).toHaveLength(4);
});

test('gzip that is cut, changed or followed by something else is unreadable, after the rows before it', async () => {
  const stored = gzipSync(numbered(5000));
  const flipped = Buffer.from(stored);
  flipped[stored.length - 6] = (flipped[stored.length - 6] ?? 0) ^ 0xff;
  const damaged = [
    stored.subarray(0, stored.length / 2),
    flipped,
    Buffer.concat([stored, Buffer.from('tail')]),
    Buffer.concat([stored, Buffer.alloc(4), gzipSync(numbered(1))]),
  ];
  for (const bytes of damaged) {
    const error = await errorOf(readAll(write(bytes, '.jsonl.gz')));
    expect([error.code, error.detail.facts?.['bytes']]).toEqual(['source.unreadable', bytes.length]);
  }
  expect((await errorOf(readAll(write('plain', '.jsonl.gz')))).message).toContain('do not begin with 1f 8b');
});

test('what cannot be a source says why and what to type', async () => {
  write(numbered(1), '-b1.jsonl');
  const missing = await errorOf(openSource([join(folder, `source-${files}-b2.jsonl`)]));
  expect([missing.code, missing.detail.remedy]).toEqual(['source.missing', expect.stringContaining(`source-${files}-b1.jsonl`)]);
  expect((await errorOf(openSource([join(folder, 'none', 'b1.jsonl')]))).detail.because).toContain('not there either');
  expect((await errorOf(openSource([join(folder, 'none.parquet')]))).code).toBe('source.missing');
  for (const [suffix, remedy] of [
    ['.jsnl', 'rename it to end in .jsonl'],
    ['.parquet.gz', 'gunzip'],
    ['.parquet', 'copy it again'],
    ['', 'Convert it'],
  ] as const) {
    const error = await errorOf(readAll(write('', suffix)));
    expect([error.code, error.detail.remedy]).toEqual(['source.unreadable', expect.stringContaining(remedy)]);
  }
  mkdirSync(join(folder, 'parts.jsonl'));
  expect((await errorOf(openSource([join(folder, 'parts.jsonl')]))).message).toContain('is a folder');
});

test('an abort ends the reading with its own reason, plain and gzip', async () => {
  for (const path of [write(numbered(3000)), write(gzipSync(numbered(3000)), '.jsonl.gz')]) {
    const stop = new AbortController();
    const batches = (await openSource([path])).batches({ skipRows: 0, signal: stop.signal });
    await batches.next();
    const reason = new Error('enough');
    stop.abort(reason);
    await expect(batches.next()).rejects.toBe(reason);
    const never = (await openSource([path])).batches({ skipRows: 0, signal: stop.signal });
    await expect(never.next()).rejects.toBe(reason);
  }
});

test('a source is compared with its pin: unchanged, touched, grown, changed, shrunk, missing', async () => {
  const path = write(numbered(3));
  const pin = (await readAll(path)).at(-1)?.pin;
  if (pin === undefined) throw new Error('no batch');
  const compare = (before: SourcePin) => compareSource(before, [path]);
  expect(await compare(pin)).toBeUndefined();
  // Same size and time: not even read.
  expect(await compare({ ...pin, sha256: 'something else' })).toBeUndefined();
  utimesSync(path, 1, 1);
  expect(await compare(pin)).toBeUndefined();
  expect(await compare({ ...pin, sha256: '', hashedBytes: 0 })).toBeUndefined();
  appendFileSync(path, numbered(1));
  expect(await compare(pin)).toMatchObject({ what: 'grown', pinnedBytes: pin.bytes, bytes: pin.bytes + 24 });
  writeFileSync(path, numbered(3).replace('question 1', 'question 7'));
  utimesSync(path, 2, 2);
  expect(await sourceDiffers(pin, path)).toMatchObject({ what: 'changed', hashedBytes: pin.bytes, pinnedSha256: pin.sha256 });
  writeFileSync(path, numbered(2));
  expect(await sourceDiffers(pin, path)).toEqual({ what: 'shrunk', path, pinnedBytes: pin.bytes, bytes: 48 });
  rmSync(path);
  expect(await sourceDiffers(pin, path)).toEqual({ what: 'missing', path, pinnedBytes: pin.bytes });
});

test('a file that grows while it is read is pinned as it was read', async () => {
  const path = write(numbered(600));
  const batches: SourceBatch[] = [];
  for await (const batch of (await openSource([path])).batches({ skipRows: 0 })) {
    if (batches.length === 0) appendFileSync(path, numbered(1));
    batches.push(batch);
  }
  const last = batches.at(-1);
  const found = last === undefined ? undefined : await sourceDiffers(last.pin, path);
  expect([last?.rows, last?.pin.bytes, found]).toEqual([601, readFileSync(path).length, undefined]);
});
