/** Folders are made as far as they are missing, and a place that takes none is an error, never a wait. */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { makeFolder } from './make-folder.ts';

test('what is missing is made, what is there is left, a file in the way is an error', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-folder-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  await Promise.all([makeFolder(join(folder, 'a/b/c')), makeFolder(join(folder, 'a/b/c'))]);
  expect(await makeFolder(join(folder, 'a/b/c'))).toEqual([]);
  expect(await makeFolder(join(folder, 'a/d/e'))).toEqual([join(folder, 'a/d'), join(folder, 'a/d/e')]);
  expect(statSync(join(folder, 'a/b/c')).isDirectory()).toBe(true);
  writeFileSync(join(folder, 'file'), '');
  await expect(makeFolder(join(folder, 'file'))).rejects.toMatchObject({ code: 'EEXIST' });
  await expect(makeFolder(join(folder, 'file/x'))).rejects.toMatchObject({ code: 'ENOTDIR' });
});

test.runIf(process.platform === 'linux')('a file system that takes no folders', async () => {
  await expect(makeFolder('/proc/nowhere/models')).rejects.toMatchObject({ code: 'ENOENT' });
});
