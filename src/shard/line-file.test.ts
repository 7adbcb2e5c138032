/** The files of enrolment: the same discipline as a shard's. */
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openLineFile } from './line-file.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aerie-lines-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

test('a batch that the ledger never heard of is cut at the next opening', async () => {
  const path = join(folder, 'prompts', 'B1.jsonl');
  const first = await openLineFile(path, 0);
  const places = await first.append([Buffer.from('{"a":1}\n'), Buffer.from('{}\n')]);
  expect(places).toEqual([
    { offset: 0, bytes: 8 },
    { offset: 8, bytes: 3 },
  ]);
  const committed = first.durableBytes;
  await first.append([Buffer.from('{"lost":1}\n')]);
  await first.close();
  appendFileSync(path, '{"torn');
  const again = await openLineFile(path, committed);
  expect([again.cutBytes, again.durableBytes]).toEqual([17, 11]);
  expect(readFileSync(path, 'utf8')).toBe('{"a":1}\n{}\n');
  await again.close();
});
