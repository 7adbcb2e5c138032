import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { NOTHING_KEPT } from '../recovery/kept-changes.ts';
import { afterStop, type LaunchRecord, openBook, type ServerBook } from './launch-book.ts';

test('writers beside each other take turns, whichever shelf they have: no remark is lost, and none fails', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-book-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const shelves = [openBook(folder, 's', NOTHING_KEPT), openBook(folder, 's', NOTHING_KEPT)];
  const remarks = Array.from({ length: 40 }, (_, nth) =>
    shelves[nth % 2]?.change((book) => ({ ...book, rules: [...(book.rules ?? []), `rule ${nth}`] })),
  );
  await Promise.all(remarks);
  const { rules = [] } = (await shelves[0]?.read()) ?? {};
  expect(rules).toEqual(remarks.map((_, nth) => `rule ${nth}`));
});

test('a remark about what is over writes nothing, and one that fails stops nobody', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-book-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const shelf = openBook(folder, 's', NOTHING_KEPT);
  const failing = shelf.change(() => {
    throw new Error('no');
  });
  const after = shelf.change((book) => ({ ...book, launches: 3 }));
  await expect(failing).rejects.toThrow('no');
  await after;
  await shelf.change(() => undefined);
  expect((await shelf.read()).launches).toBe(3);
});

test('a launch of which something is left after a stop is in the book until that has gone, and counts as no try', () => {
  const launch: LaunchRecord = {
    ...{ n: 1, marker: 's-1', flags: {}, env: {}, line: '', port: 1, startedAt: 0, answered: 0 },
    ...{ logPath: '/l', statusPath: '/s' },
  };
  const book: ServerBook = { v: 1, launches: 1, tries: [], isPending: true, kept: NOTHING_KEPT };
  expect(afterStop({ ...book, current: launch }, true)).toEqual({ ...book, isPending: false });
  const left = afterStop({ ...book, current: launch }, false);
  expect(left).toEqual({ ...book, isPending: false, leftover: launch });
  expect(afterStop(left, false)).toEqual(left);
  expect(afterStop(left, true)).toEqual({ ...book, isPending: false });
  // What follows a death is still to be decided when its leftover is ended.
  expect(afterStop({ ...book, leftover: launch }, true)).toEqual({ ...book, isPending: true });
});
