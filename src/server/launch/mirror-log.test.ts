/** The mirror of a log elsewhere, over real files: this machine, said not to be here. Bytes are compared, not sizes. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { elsewhere, followMirrored } from '../../../test/support/mirrored-log.ts';
import { onSmallDisk, whyNoSmallDisk } from '../../../test/support/tmpfs.ts';
import { AerieError } from '../../base/errors.ts';
import type { Machine } from '../../machine/machine.ts';
import type { LogFollower } from './follow-log.ts';
import { findMirror } from './mirror-place.ts';

interface Bench {
  /** The run folder. */
  readonly folder: string;
  /** The log there. */
  readonly there: string;
  readonly here: string;
  readonly said: string[];
  /** A worker's reader, from the beginning of the log, as at each start. */
  watch(launch?: number, machine?: Machine): LogFollower;
  read(name: string): string;
}

function bench(): Bench {
  const root = mkdtempSync(join(tmpdir(), 'aerie-mirror-'));
  onTestFinished(() => rmSync(root, { recursive: true }));
  mkdirSync(join(root, 'there'));
  const folder = join(root, 'run');
  const there = join(root, 'there', 's.log');
  const said: string[] = [];
  return {
    ...{ folder, there, here: join(folder, 'logs', 's.log'), said },
    watch(launch = 1, machine = elsewhere) {
      const onTrouble = (sentence: string) => void said.push(sentence);
      return followMirrored({ machine, logPath: there, folder, launch, onTrouble });
    },
    read: (name) => readFileSync(join(folder, 'logs', name), 'latin1'),
  };
}

test('what is read is here too, and a worker that comes later goes on where the mirror stands', async () => {
  const { there, watch, read, here } = bench();
  writeFileSync(there, 'one\n');
  const first = watch();
  await first.readOn();
  expect(read('s.log')).toBe('one\n');
  appendFileSync(there, 'two\n');
  await first.readOn();
  await first.readOn();
  expect(read('s.log')).toBe('one\ntwo\n');
  appendFileSync(there, 'three\n');
  const { ino } = statSync(here);
  await watch().readOn();
  expect(read('s.log')).toBe('one\ntwo\nthree\n');
  expect(statSync(here).ino).toBe(ino);
});

test('each launch has its own, numbered as those of this machine, whatever was mirrored of it', async () => {
  const { there, folder, watch, read } = bench();
  const begin = (n: number, text: string) => {
    if (existsSync(there)) renameSync(there, `${there}.${n - 1}`);
    writeFileSync(there, text);
  };
  begin(1, 'first');
  await watch(1).readOn();
  begin(2, 'second, of which no worker has seen anything');
  begin(3, 'third');
  await watch(3).readOn();
  await watch(3).readOn();
  expect(read('s.log')).toBe('third');
  expect(read('s.log.1')).toBe('first');
  expect(await findMirror(folder, 's', 3)).toBe(join(folder, 'logs', 's.log'));
  expect(await findMirror(folder, 's', 2)).toBeUndefined();
  expect(await findMirror(folder, 's', 1)).toBe(join(folder, 'logs', 's.log.1'));
});

test('the log of a launch of this machine makes room for the mirror of one elsewhere, and is kept', async () => {
  const { there, folder, here, watch, read } = bench();
  mkdirSync(join(folder, 'logs'), { recursive: true });
  writeFileSync(here, 'launch 4, here');
  writeFileSync(there, 'launch 5, elsewhere');
  await watch(5).readOn();
  expect(read('s.log')).toBe('launch 5, elsewhere');
  expect(read('s.log.4')).toBe('launch 4, here');
  // Here again, which moves the log that it finds, and elsewhere once more.
  renameSync(here, `${here}.5`);
  writeFileSync(here, 'launch 6, here');
  writeFileSync(there, 'launch 7, elsewhere');
  await watch(7).readOn();
  expect(['s.log', 's.log.4', 's.log.5', 's.log.6'].map(read)).toEqual([
    'launch 7, elsewhere',
    'launch 4, here',
    'launch 5, elsewhere',
    'launch 6, here',
  ]);
});

test('a mirror with a tail of zeros, as a power cut leaves it, is mended', async () => {
  const { there, here, watch, read, folder } = bench();
  writeFileSync(there, 'a log of some words\n');
  await watch().readOn();
  truncateSync(here, 5);
  truncateSync(here, 12); // zeros
  await watch().readOn();
  expect(read('s.log')).toBe('a log of some words\n');
  expect(readdirSync(join(folder, 'logs')).toSorted()).toEqual(['s.log', 's.mirror.json']);
});

test.each([
  ['cut to nothing', '', ''],
  ['cut and begun anew, shorter', 'new\n', 'new\n'],
  ['another one of the same length', 'other bytes', 'other bytes'],
])('a log that is %s leaves what was mirrored beside the new mirror', async (_, now, expected) => {
  const { there, folder, watch, read } = bench();
  writeFileSync(there, 'older words');
  const live = watch();
  await live.readOn();
  writeFileSync(there, now);
  if (now.length < 'older words'.length) await live.readOn();
  else await watch().readOn();
  expect(existsSync(join(folder, 'logs', 's.log')) ? read('s.log') : '').toBe(expected);
  expect(read('s.log.1.cut-1')).toBe('older words');
  // The same worker and the next one go on with the new log.
  appendFileSync(there, ' and more, longer than the old log was');
  for (const follower of [live, live, watch()]) await follower.readOn();
  expect(read('s.log')).toBe(`${now} and more, longer than the old log was`);
  expect(read('s.log.1.cut-1')).toBe('older words');
});

test('over ssh to this machine, into the same file, nothing is mirrored and nothing is moved', async () => {
  const { folder, here } = bench();
  mkdirSync(join(folder, 'logs'), { recursive: true });
  writeFileSync(here, 'written by the server');
  await followMirrored({ logPath: here, folder, launch: 2 }).readOn();
  expect(readdirSync(join(folder, 'logs'))).toEqual(['s.log']);
  expect(readFileSync(here, 'utf8')).toBe('written by the server');
});

test('a machine that is out of reach while a gap is read again is no trouble of the mirror, and the gap is read later', async () => {
  const { there, here, said, watch, read } = bench();
  writeFileSync(there, 'one\n');
  let isAway = false;
  const machine: Machine = {
    ...elsewhere,
    readFile: (path, offset, most) => {
      if (isAway && offset < 4) throw new AerieError('machine.unreachable', 'gpu-box is away', { remedy: '' });
      return elsewhere.readFile(path, offset, most);
    },
  };
  const follower = watch(1, machine);
  await follower.readOn();
  rmSync(here); // somebody cleans up: all of it is to be read again
  mkdirSync(here); // and it cannot be written
  appendFileSync(there, 'two\n');
  await follower.readOn();
  expect(said).toHaveLength(1);
  rmSync(here, { recursive: true });
  isAway = true;
  appendFileSync(there, 'three\n');
  await follower.readOn();
  expect(existsSync(here)).toBe(false);
  isAway = false;
  await follower.readOn();
  expect(read('s.log')).toBe('one\ntwo\nthree\n');
  expect(said).toHaveLength(1);
});

const noDisk = whyNoSmallDisk();
test.skipIf(noDisk !== undefined)('a disk that is full is said once; with room again nothing is missing', async () => {
  const { there, folder, watch, said, read } = bench();
  const text = Array.from({ length: 40_000 }, (_, at) => `line ${at}\n`).join('');
  await onSmallDisk(folder, 128 * 1024, async (disk) => {
    const follower = watch();
    for (let at = 0; at < text.length; at += 50_000) {
      appendFileSync(there, text.slice(at, at + 50_000));
      await follower.readOn();
    }
    expect(said).toEqual([
      expect.stringMatching(/^s: its log on gpu-box cannot be copied to .*s\.log \(ENOSPC\); the run goes on/),
    ]);
    expect(text.startsWith(read('s.log'))).toBe(true);
    expect(follower.bytes).toBe(text.length); // who watches the server has missed nothing
    disk.resize(4 * 2 ** 20);
    await follower.readOn();
    expect(read('s.log') === text).toBe(true);
    expect(said).toHaveLength(1);
  });
});

test('kill -9 at any moment leaves a beginning of the log, and the next worker makes it whole', async () => {
  const { there, folder, here, watch } = bench();
  const program = fileURLToPath(new URL('../../../test/support/mirror-on.mjs', import.meta.url));
  const line = 'all work and no play makes a log of some length, and this is a line of it\n';
  writeFileSync(there, '');
  let lines = 0;
  for (let round = 0; round < 8; round++) {
    const child = spawn(process.execPath, [program, there, folder], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    // Large pieces, so that the kill meets an append rather than a pause.
    const untilMs = performance.now() + 100 + 20 * round;
    while (performance.now() < untilMs) {
      const piece = Array.from({ length: 20_000 }, () => `${lines++} ${line}`).join('');
      appendFileSync(there, piece);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    child.kill('SIGKILL');
    await once(child, 'exit');
    const mirrored = existsSync(here) ? readFileSync(here) : Buffer.alloc(0);
    expect(readFileSync(there).subarray(0, mirrored.length).equals(mirrored)).toBe(true);
  }
  expect(statSync(here).size).toBeGreaterThan(0);
  await watch().readOn();
  expect(readFileSync(here).equals(readFileSync(there))).toBe(true);
  expect(readdirSync(join(folder, 'logs')).toSorted()).toEqual(['s.log', 's.mirror.json']);
}, 120_000);
