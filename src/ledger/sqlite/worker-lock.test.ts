/** One worker per run: a real second process holds the lock, dies by kill -9, and leaves it free. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { deniedToWrite } from '../../../test/contracts/denied-to-write.ts';
import type { AerieError } from '../../base/errors.ts';
import { holdRun } from './worker-lock.ts';

const me = { pid: process.pid, host: 'here', startedAt: 0 };
const other = { pid: 4242, host: 'gpu-box', startedAt: Date.UTC(2026, 0, 2, 3, 4, 5) };
let folder = '';
let child: ChildProcess | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aerie-lock-'));
});
afterEach(() => {
  child?.kill('SIGKILL');
  chmodSync(folder, 0o700);
  rmSync(folder, { recursive: true });
});

/** Another program that knows only SQLite, so that the lock is shown to be the system's and not this module's. */
async function holdElsewhere(): Promise<ChildProcess> {
  const program = `
    import { DatabaseSync } from '@photostructure/sqlite';
    globalThis.held = new DatabaseSync(process.argv[1], { timeout: 0 }); // kept from the garbage collector
    held.exec('BEGIN EXCLUSIVE');
    process.stdout.write('held');
    setInterval(() => {}, 1000);`;
  child = spawn(process.execPath, ['--input-type=module', '-e', program, join(folder, 'lock.sqlite')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (child.stdout !== null) await once(child.stdout, 'data');
  return child;
}

function refusal(): AerieError {
  try {
    holdRun(folder, me).release();
  } catch (thrown) {
    return thrown as AerieError;
  }
  throw new Error('the run could be held');
}

test('a run held by another process is refused with its name and what to type', async () => {
  writeFileSync(join(folder, 'lock.json'), JSON.stringify(other));
  await holdElsewhere();
  const error = refusal();
  expect(error.code).toBe('ledger.held-elsewhere');
  expect(error.message).toBe('This run is being worked on by pid 4242 on gpu-box since 2026-01-02T03:04:05.000Z.');
  expect(error.detail.remedy).toContain(`aerie stop ${folder}`);
  expect(error.detail.facts).toMatchObject(other);
});

test.each(['', '{', '{"pid":"4242"}'])('a holder that left no readable name (%j) is refused all the same', async (name) => {
  writeFileSync(join(folder, 'lock.json'), name);
  await holdElsewhere();
  expect(refusal().message).toBe('This run is being worked on by a worker that has not written its name.');
});

test('kill -9 of the holder frees the run at once', async () => {
  const holder = await holdElsewhere();
  expect(refusal().code).toBe('ledger.held-elsewhere');
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  holdRun(folder, me).release();
});

test('the same process cannot hold a run twice, and may after it was released', () => {
  const held = holdRun(folder, me);
  expect(refusal().message).toContain(`pid ${process.pid} on here`);
  held.release();
  held.release();
  expect(existsSync(join(folder, 'lock.json'))).toBe(false);
  holdRun(folder, me).release();
  expect(readdirSync(folder)).toEqual(['lock.sqlite']);
});

test('a run stays held though nothing in the program refers to the lock any more', async () => {
  holdRun(folder, me);
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
  await new Promise((resolve) => setTimeout(resolve, 50)); // finalizers run after the collection
  expect(refusal().code).toBe('ledger.held-elsewhere');
});

test.each([false, true])('a folder that cannot be written is named as that (lock file there: %s)', (isThere) => {
  if (isThere) holdRun(folder, me).release();
  if (isThere) chmodSync(join(folder, 'lock.sqlite'), 0o444);
  chmodSync(folder, 0o555);
  deniedToWrite(() => expect(refusal().code).toBe('disk.read-only'));
});
