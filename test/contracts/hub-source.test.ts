/** A source on the hub: listed in pages, fetched when its turn comes, pinned by its commit, and every refusal named. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { AerieError } from '../../src/base/errors.ts';
import { openSource, type SourceBatch, type SourceOptions } from '../../src/dataset/open-source.ts';
import { GOOD_TOKEN, type HubSet, startHubServer } from '../support/hub-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'aerie-hub-'));
const [OLD, NEW] = ['a'.repeat(40), 'b'.repeat(40)];
const lines = (...prompts: string[]) => Buffer.from(prompts.map((prompt) => `${JSON.stringify({ prompt })}\n`).join(''));
const files = {
  'README.md': Buffer.from('# a set'),
  'data/train-0.jsonl': lines('first', 'second'),
  'data/train-1.jsonl': lines(...Array.from({ length: 20 }, (_, at) => `large ${at}`)),
  'data/test-0.jsonl': lines('held out'),
  'data/empty space.jsonl': Buffer.alloc(0),
};
const open: HubSet = { commit: OLD, files: { [OLD]: files, [NEW]: { 'data/train-0.jsonl': lines('other') } } };
const hub = await startHubServer({ 'org/open': open, 'org/closed': { commit: OLD, isPrivate: true, files: { [OLD]: files } } });
afterAll(async () => {
  await hub.close();
  rmSync(folder, { recursive: true });
});

let caches = 0;
const freshEnv = (more: Record<string, string> = {}) => {
  caches += 1;
  return { HF_ENDPOINT: hub.url, AERIE_CACHE: join(folder, `cache-${caches}`), ...more };
};

async function readAll(from: string, options: SourceOptions, skipRows = 0): Promise<SourceBatch[]> {
  const batches: SourceBatch[] = [];
  for await (const batch of (await openSource([from], options)).batches({ skipRows })) batches.push(batch);
  return batches;
}
const contents = (batches: readonly SourceBatch[]) =>
  batches.flatMap(({ prompts }) => prompts.map(({ messages }) => messages[0]?.content));

async function errorOf(work: Promise<unknown>): Promise<AerieError> {
  const thrown: unknown = await work.catch((error: unknown) => error);
  if (!(thrown instanceof AerieError)) throw new Error(`expected an AerieError, got ${String(thrown)}`);
  return thrown;
}

test('a pattern over pages of a listing is read in order, small files and redirected ones; the commit is in the pin', async () => {
  const env = freshEnv();
  const batches = await readAll('hf://datasets/org/open/data/train-*.jsonl', { env });
  expect(contents(batches)).toEqual(['first', 'second', ...Array.from({ length: 20 }, (_, at) => `large ${at}`)]);
  const pin = batches.at(-1)?.pin;
  expect(pin?.path).toBe(`hf://datasets/org/open@${OLD}/data/train-*.jsonl`);
  expect(pin?.files?.map(({ rows, isWhole }) => [rows, isWhole])).toEqual([
    [2, true],
    [20, true],
  ]);
  expect(readdirSync(join(env.AERIE_CACHE, 'datasets', 'org--open', OLD, 'data')).sort()).toEqual([
    'train-0.jsonl',
    'train-1.jsonl',
  ]);
  expect(await readAll('hf://datasets/org/open/data/empty*.jsonl', { env })).toMatchObject([{ rows: 0, ended: true }]);
});

test('a resume reads the same commit after the branch has moved, without the hub where the cache has it', async () => {
  const env = freshEnv();
  const from = 'hf://datasets/org/open/data/train-*.jsonl';
  const pin = (await readAll(from, { env })).at(-1)?.pin;
  open.commit = NEW;
  try {
    expect(contents(await readAll(from, { env: freshEnv() }))).toEqual(['other']);
    hub.requests.length = 0;
    const rest = await readAll(from, { env, ...(pin === undefined ? {} : { pin }) }, 1);
    expect([contents(rest).slice(0, 2), hub.requests]).toEqual([['second', 'large 0'], []]);
    expect(rest.at(-1)?.pin).toEqual(pin);
  } finally {
    open.commit = OLD;
  }
});

test('a private set is read with its token, and refused by name without one or with a wrong one, which is never shown', async () => {
  const from = 'hf://datasets/org/closed/data/train-0.jsonl';
  expect(contents(await readAll(from, { env: freshEnv({ HF_TOKEN: GOOD_TOKEN }) }))).toEqual(['first', 'second']);
  const without = await errorOf(readAll(from, { env: freshEnv() }));
  expect([without.code, without.detail.remedy]).toEqual(['hub.refused', expect.stringContaining('export HF_TOKEN=')]);
  for (const token of ['hf_secretwrong', 'secretwrong']) {
    const wrong = await errorOf(readAll(from, { env: freshEnv({ HF_TOKEN: token }) }));
    expect(wrong.code).toBe('hub.refused');
    expect(`${wrong.message} ${JSON.stringify(wrong.detail)} ${String(wrong.cause)}`).not.toContain('secretwrong');
  }
});

test('what is not there, in the set or at all, is missing', async () => {
  const missing = await errorOf(readAll('hf://datasets/org/open/data/trian-*.jsonl', { env: freshEnv() }));
  expect([missing.code, missing.detail.because]).toEqual(['source.missing', expect.stringContaining('data/train-0.jsonl')]);
  const token = { HF_TOKEN: GOOD_TOKEN };
  for (const from of [
    'hf://datasets/org/none/a.jsonl',
    'hf://datasets/org/open@v9/a.jsonl',
    'hf://datasets/org/open/none/a.jsonl',
  ]) {
    expect([from, (await errorOf(readAll(from, { env: freshEnv(token) }))).code]).toEqual([from, 'source.missing']);
  }
});

test('no network, and a download that breaks off, say what to type and keep nothing half', async () => {
  const from = 'hf://datasets/org/open/data/train-1.jsonl';
  const away = await errorOf(readAll(from, { env: { ...freshEnv(), HF_ENDPOINT: 'http://127.0.0.1:9' } }));
  expect([away.code, away.detail.remedy]).toEqual(['hub.unreachable', expect.stringContaining('from:')]);
  const env = freshEnv();
  hub.cutAfter = 150;
  try {
    expect((await errorOf(readAll(from, { env }))).code).toBe('hub.unreachable');
  } finally {
    hub.cutAfter = 0;
  }
  expect(readdirSync(join(env.AERIE_CACHE, 'datasets', 'org--open', OLD, 'data'))).toEqual([]);
  expect(contents(await readAll(from, { env }))).toHaveLength(20);
});
