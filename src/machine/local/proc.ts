/**
 * What the kernel says of processes, read from /proc. Every question answers with a value: a process may end between two looks, and
 * others' processes may not be looked into. Without /proc (macOS) nobody is there to be seen: `hasProc` says so.
 */
import { existsSync } from 'node:fs';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { systemCodeOf } from '../../base/errors.ts';
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
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number);
  const stats = await Promise.all(pids.map(readStat));
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
  return readFile(path, 'utf8').catch(() => undefined);
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
    return code === 'EACCES' || code === 'EPERM' ? 'not-permitted' : 'gone';
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
