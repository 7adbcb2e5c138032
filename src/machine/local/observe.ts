/** The processes of a launch on this machine: who they are, how they are, and a signal to one of them. */
import type { FamilyMember, ProcessIdentity, ProcessLook, ProcessPresence, SignalResult } from '../machine.ts';
import { systemCodeOf } from '../../base/errors.ts';
import { findFamily } from '../family.ts';
import { hasEnded, type ProcessStat } from '../parse-stat.ts';
import { hasProc, readAllStats, readBootId, readCommand, readEnvironment, readProc, readStat } from './proc.ts';

interface Found extends ProcessStat {
  readonly carriesMarker: boolean;
  readonly hasEnded: boolean;
}

const UNSEEN = { family: [], residentBytes: undefined, readBytes: undefined, cpuTicks: undefined, compilers: 0 } as const;

/** All of a look but the exit status, which is a file's. */
export async function lookAtProcesses(identity: ProcessIdentity, marker: string): Promise<Omit<ProcessLook, 'exitStatus'>> {
  if (!hasProc()) return { main: 'unknown', ...UNSEEN };
  const bootId = await readBootId();
  const found = await findMarked(marker);
  const main = found.find((stat) => isSame(stat, bootId, identity));
  const family = findFamily(found, main?.pid);
  const loads = await Promise.all(family.map(({ pid }) => readLoad(pid)));
  return {
    main: main === undefined ? 'gone' : presenceOf(main),
    family: await describeFamily(family, bootId),
    residentBytes: total(loads.map(({ residentBytes }) => residentBytes)),
    readBytes: total(loads.map(({ readBytes }) => readBytes)),
    cpuTicks: family.reduce((sum, { cpuTicks }) => sum + cpuTicks, 0),
    compilers: family.filter(({ name, state }) => COMPILERS.has(name) && !hasEnded(state)).length,
  };
}

export async function findCarriers(marker: string): Promise<FamilyMember[]> {
  return describeFamily(findFamily(await findMarked(marker), undefined), await readBootId());
}

/** The identity is read again right before the signal is sent. */
export async function signalProcess(identity: ProcessIdentity, signal: 'SIGTERM' | 'SIGKILL'): Promise<SignalResult> {
  if (!hasProc()) return 'not-permitted'; // nobody can say that it is still the same process
  const [stat, bootId] = await Promise.all([readStat(identity.pid), readBootId()]);
  if (stat === undefined) return 'gone';
  if (!isSame(stat, bootId, identity)) return 'another-process';
  if (hasEnded(stat.state)) return 'gone';
  try {
    process.kill(identity.pid, signal);
    return 'sent';
  } catch (thrown) {
    return systemCodeOf(thrown) === 'ESRCH' ? 'gone' : 'not-permitted';
  }
}

/** By its presence and nothing else: for programs that were found otherwise, a holder or a parent. */
export function presenceOf({ state }: Pick<ProcessStat, 'state'>): ProcessPresence {
  return hasEnded(state) ? 'zombie' : 'running';
}

/** A program may retitle itself, so the command line is for people; pid, start and boot are what cannot change. */
function isSame(stat: ProcessStat, bootId: string, identity: ProcessIdentity): boolean {
  return stat.pid === identity.pid && stat.startTicks === identity.startTicks && bootId === identity.bootId;
}

async function findMarked(marker: string): Promise<Found[]> {
  const stats = await readAllStats();
  const word = `AERIE_LAUNCH=${marker}`;
  return Promise.all(
    stats.map(async (stat) => {
      const carriesMarker = (await readEnvironment(stat.pid))?.includes(word) === true;
      return { ...stat, carriesMarker, hasEnded: hasEnded(stat.state) };
    }),
  );
}

function describeFamily(family: readonly Found[], bootId: string): Promise<FamilyMember[]> {
  return Promise.all(
    family.map(async (stat) => ({
      ...{ pid: stat.pid, startTicks: stat.startTicks, bootId, command: await readCommand(stat) },
      ...{ parent: stat.parent, presence: presenceOf(stat), isUninterruptible: stat.state === 'D' },
    })),
  );
}

/** As the kernel names programs, 15 bytes at most. What an engine starts when it builds kernels at its first launch. */
const COMPILERS: ReadonlySet<string> = new Set(
  'ninja nvcc cicc ptxas cudafe++ fatbinary cc1 cc1plus gcc g++ c++ cc clang clang++ ld as hipcc'.split(' '),
);

/**
 * Bytes read: the larger of what the disk gave (`read_bytes`, which also counts pages of a mapped file) and what read() returned
 * (`rchar`, which also counts the page cache). Weights are loaded in one way or the other, and each alone may stand still.
 */
async function readLoad(pid: number): Promise<{ residentBytes: number | undefined; readBytes: number | undefined }> {
  const [status, io] = await Promise.all([readProc(`/proc/${pid}/status`), readProc(`/proc/${pid}/io`)]);
  const resident = /^VmRSS:\s+(\d+) kB$/m.exec(status ?? '')?.[1];
  const [fromDisk, byRead] = ['read_bytes', 'rchar'].map((key) => new RegExp(`^${key}: (\\d+)$`, 'm').exec(io ?? '')?.[1]);
  return {
    residentBytes: resident === undefined ? undefined : Number(resident) * 1024,
    readBytes: fromDisk === undefined || byRead === undefined ? undefined : Math.max(Number(fromDisk), Number(byRead)),
  };
}

/** Of those that may be read; undefined where none may. */
function total(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0);
}
