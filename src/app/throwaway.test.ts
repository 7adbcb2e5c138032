/** The folder of a preview, where there is no place for it. */
import { existsSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeThrowaway } from './throwaway.ts';

test('a folder of its own, and a place that is not there is said', async () => {
  const folder = await makeThrowaway('preview');
  onTestFinished(() => rmSync(folder, { recursive: true }));
  expect(existsSync(folder)).toBe(true);
  expect(dirname(folder)).toBe(tmpdir());
  expect(basename(folder)).toMatch(/^aerie-preview-/);
  const absent = join(folder, 'not', 'there');
  await expect(makeThrowaway('preview', absent)).rejects.toMatchObject({
    code: 'disk.read-only',
    message: expect.stringContaining(`${absent}: ENOENT`),
    detail: { remedy: expect.stringContaining('TMPDIR') },
  });
});
