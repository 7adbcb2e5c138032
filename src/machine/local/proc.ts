/**
 * What the kernel says of processes, read from /proc. Every question answers with a value: a process may end between two looks, and
 * others' processes may not be looked into. Without /proc (macOS) nobody is there to be seen: `hasProc` says so.
 * On failure: `machine.unreachable` where this process can open no more files: who cannot be looked at is not gone.
 */
import { existsSync } from 'node:fs';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { AerieError, systemCodeOf } from '../../base/errors.ts';
import { commandOf } from '../describe-look.ts';
import type { ProcessIdentity } from '../machine.ts';
import { type ProcessStat, parseStat } from '../parse-stat.ts';

export function hasProc(): boolean {
  return existsSync('/proc/self/stat');
}

export async function readStat(pid: number): Promise<ProcessStat | undefined> {
  return parseStat((await readProc(`/proc/${pid}/stat`)) ?? '');
}

/** All that can be seen: where /proc hides others' processes (hidepid), those of this user. */
export async function readAllStats(): Promise<ProcessStat[]> {
  const names = await readdir('/proc').catch(orShortage([]));
  const stats = await askEach(names.filter((name) => /^\d+$/.test(name)).map(Number), readStat);
  return stats.filter((stat) => stat !== undefined);
}

/** Arguments with spaces between; the name in brackets where there are none, as `ps` writes it. */
export async function readCommand({ pid, name }: Pick<ProcessStat, 'pid' | 'name'>): Promise<string> {
  return commandOf(name, (await readProc(`/proc/${pid}/cmdline`)) ?? '');
}

/** undefined: gone, or not to be read by this user. */
export async function readEnvironment(pid: number): Promise<readonly string[] | undefined> {
  return (await readProc(`/proc/${pid}/environ`))?.split('\0');
}

/** The text of a file below /proc; undefined where it is gone or not to be read. */
export async function readProc(path: string): Promise<string | undefined> {
  return readFile(path, 'utf8').catch(orShortage(undefined));
}

/** Files are opened for all that is asked at once before the first is read, and a machine may have thousands of processes. */
const ASKED_AT_ONCE = 32;

export async function askEach<T, Answer>(of: readonly T[], ask: (one: T) => Promise<Answer>): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let at = 0; at < of.length; at += ASKED_AT_ONCE)
    answers.push(...(await Promise.all(of.slice(at, at + ASKED_AT_ONCE).map(ask))));
  return answers;
}

/** Of this process, of the system, of memory. */
const SHORTAGES: readonly string[] = ['EMFILE', 'ENFILE', 'ENOMEM'];

function orShortage<T>(otherwise: T): (thrown: unknown) => T {
  return (thrown) => {
    const code = systemCodeOf(thrown);
    if (!SHORTAGES.includes(code)) return otherwise;
    throw new AerieError('machine.unreachable', `This machine cannot be looked at: no more files can be opened (${code}).`, {
      remedy:
        'What runs here goes on. Ask for fewer requests at a time with in-flight:, or raise the limit (ulimit -n) where you start Aerie.',
    });
  };
}

export async function readBootId(): Promise<string> {
  return ((await readProc('/proc/sys/kernel/random/boot_id')) ?? '').trim();
}

/** What its open files are, by descriptor or by thread; undefined where that may not be seen. */
export async function readOpenFiles(folder: string): Promise<string[] | 'gone' | 'not-permitted'> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch (thrown) {
    const code = systemCodeOf(thrown);
    return code === 'EACCES' || code === 'EPERM' ? 'not-permitted' : orShortage('gone' as const)(thrown);
  }
  const links = await Promise.all(names.map((name) => readlink(`${folder}/${name}`).catch(() => '')));
  return links.filter((link) => link !== '');
}

/** The process that has this pid now, if there is one. */
export async function identityOf(pid: number, bootId: string): Promise<ProcessIdentity | undefined> {
  const stat = await readStat(pid);
  if (stat === undefined) return undefined;
  return { pid, startTicks: stat.startTicks, bootId, command: await readCommand(stat) };
}
