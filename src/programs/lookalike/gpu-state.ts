/**
 * The memory of GPUs that do not exist, in a folder: `gpus.json` says which cards there are, `holds/PID-STARTTICKS.json`
 * what one process has taken of them. The lookalike engine writes its hold, the lookalike of nvidia-smi reads them all;
 * nothing else is shared, so memory comes back as on a real card: when its process has ended, whoever ended it.
 *
 * Promises: a hold counts while that very process (pid and start time) lives, and longer only where it says so; it is
 * replaced whole, never seen half-written. On failure: a folder that is not there or not as described throws, because a
 * test or a rehearsal that is set up wrongly must not look like a machine with free cards.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { systemCodeOf } from '../../base/errors.ts';
import { hasEnded, parseStat } from '../../machine/parse-stat.ts';

/** Names the state folder; where it is not set there are no such GPUs. */
export const GPUS_VARIABLE = 'AERIE_LOOKALIKE_GPUS';

const GPU = z.object({
  uuid: z.string().min(1),
  name: z.string().min(1),
  totalMiB: z.number().int().positive(),
  /** Used with nobody there: what a driver keeps. */
  baseMiB: z.number().int().nonnegative(),
  /** Left out: 0 while nobody holds memory, 97 else. null: the card does not tell, `[N/A]`. */
  utilisationPercent: z.number().int().nullable().optional(),
});
const GPUS = z.array(GPU).min(1);
export type LookalikeGpu = z.infer<typeof GPU>;

const HOLD = z.object({
  /** Index of the GPU → MiB. */
  gpus: z.record(z.string().regex(/^\d+$/), z.number().nonnegative()),
  /** As nvidia-smi would print it. */
  name: z.string().default('[Not Found]'),
  /**
   * How long the memory stays after the process has ended: milliseconds from the first look that finds it ended; `true` for
   * ever (also: its process is not to be seen from here); `until-reaped` while it is a zombie, as where one of its threads
   * is still in the driver. Left out: it is free when the process has ended.
   */
  keepsAfterDeath: z.union([z.number().nonnegative(), z.literal(true), z.literal('until-reaped')]).optional(),
});
export type Hold = z.infer<typeof HOLD>;

export interface LivingHold extends Hold {
  readonly pid: number;
}

export function readGpus(folder: string): readonly LookalikeGpu[] {
  return GPUS.parse(JSON.parse(readFileSync(join(folder, 'gpus.json'), 'utf8')));
}

/** The holds that count now, by pid. */
export function readHolds(folder: string): readonly LivingHold[] {
  return namesIn(holdsFolder(folder))
    .flatMap((name) => {
      const [, pid, startTicks] = HOLD_NAME.exec(name) ?? [];
      if (pid === undefined || startTicks === undefined) return [];
      const path = join(holdsFolder(folder), name);
      const hold = readHold(path);
      const counts = hold !== undefined && doesCount(path, { pid: Number(pid), startTicks: Number(startTicks) }, hold);
      return counts ? [{ ...hold, pid: Number(pid) }] : [];
    })
    .sort((a, b) => a.pid - b.pid);
}

export function writeHold(folder: string, holder: HolderKey, hold: Hold): void {
  mkdirSync(holdsFolder(folder), { recursive: true });
  const path = holdPath(folder, holder);
  writeFileSync(`${path}.new`, `${JSON.stringify(hold)}\n`);
  renameSync(`${path}.new`, path);
}

export function removeHold(folder: string, holder: HolderKey): void {
  rmSync(holdPath(folder, holder), { force: true });
  rmSync(`${holdPath(folder, holder)}.ended`, { force: true });
}

export interface HolderKey {
  readonly pid: number;
  readonly startTicks: number;
}

/** Of a process that is there. Without /proc every process of a pid is the same one: 0. */
export function holderKeyOf(pid: number): HolderKey {
  return { pid, startTicks: statOf(pid)?.startTicks ?? 0 };
}

const HOLD_NAME = /^(\d+)-(\d+)\.json$/;
const HAS_PROC = statOf(process.pid) !== undefined;

function holdsFolder(folder: string): string {
  return join(folder, 'holds');
}

function holdPath(folder: string, { pid, startTicks }: HolderKey): string {
  return join(holdsFolder(folder), `${pid}-${startTicks}.json`);
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (thrown) {
    if (systemCodeOf(thrown) === 'ENOENT') return []; // nobody has taken any yet
    throw thrown;
  }
}

/** undefined: released between two looks. */
function readHold(path: string): Hold | undefined {
  try {
    return HOLD.parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (thrown) {
    if (systemCodeOf(thrown) === 'ENOENT') return undefined;
    throw thrown;
  }
}

function doesCount(path: string, holder: HolderKey, { keepsAfterDeath }: Hold): boolean {
  const presence = presenceOf(holder);
  if (presence === 'alive' || keepsAfterDeath === true) return true;
  if (keepsAfterDeath === 'until-reaped') return presence === 'zombie';
  if (keepsAfterDeath === undefined) return false;
  return Date.now() - firstSeenEnded(path) < keepsAfterDeath;
}

/** The first look that finds the process ended writes it down. */
function firstSeenEnded(path: string): number {
  const note = `${path}.ended`;
  try {
    writeFileSync(note, '', { flag: 'wx' });
  } catch (thrown) {
    if (systemCodeOf(thrown) !== 'EEXIST') throw thrown;
  }
  return statSync(note).mtimeMs;
}

function presenceOf({ pid, startTicks }: HolderKey): 'alive' | 'zombie' | 'gone' {
  if (!HAS_PROC) return isThere(pid) ? 'alive' : 'gone';
  const stat = statOf(pid);
  if (stat === undefined || stat.startTicks !== startTicks) return 'gone';
  return hasEnded(stat.state) ? 'zombie' : 'alive';
}

function statOf(pid: number): ReturnType<typeof parseStat> {
  try {
    return parseStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return undefined; // no such process, or a system without /proc
  }
}

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (thrown) {
    return systemCodeOf(thrown) === 'EPERM';
  }
}
