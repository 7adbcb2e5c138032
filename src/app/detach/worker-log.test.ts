/** The log of a detached worker: whose it is, and that it is bounded. */
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { beginningLog, cutLong, logOf, takePlace } from './worker-log.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'aerie-worker-log-'));
  mkdirSync(join(folder, 'logs'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
});

const logs = () => {
  const names = readdirSync(join(folder, 'logs')).toSorted();
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, 'logs', name), 'utf8')]));
};

test('who begins takes the place; five before it are kept, and nothing of one that never began', () => {
  for (let n = 1; n <= 8; n++) {
    writeFileSync(beginningLog(folder, n), `worker ${n}`);
    writeFileSync(beginningLog(folder, 100 + n), 'killed before it began');
    takePlace(folder, beginningLog(folder, n));
  }
  expect(logs()).toEqual({
    'worker.log': 'worker 8',
    ...Object.fromEntries([1, 2, 3, 4, 5].map((at) => [`worker.log.${at}`, `worker ${8 - at}`])),
  });
});

test('a folder that is not there is nobody’s error', () => {
  rmSync(join(folder, 'logs'), { recursive: true });
  takePlace(folder, beginningLog(folder, 1));
  mkdirSync(join(folder, 'logs'));
  expect(logs()).toEqual({});
});

test('a log that grows too long is moved by its bytes, and its writer goes on in the same file', () => {
  const log = logOf(folder);
  const writer = openSync(log, 'a');
  writeSync(writer, 'a'.repeat(11));
  cutLong(log, 20);
  writeSync(writer, 'b'.repeat(11));
  cutLong(log, 20);
  writeSync(writer, 'c');
  closeSync(writer);
  expect(logs()).toEqual({ 'worker.log': 'c', 'worker.log.1': `${'a'.repeat(11)}${'b'.repeat(11)}` });
  appendFileSync(log, 'd'.repeat(30));
  cutLong(log, 20);
  expect(logs()).toEqual({
    'worker.log': '',
    'worker.log.1': `c${'d'.repeat(30)}`,
    'worker.log.2': `${'a'.repeat(11)}${'b'.repeat(11)}`,
  });
});
