/**
 * One look at a launch, from what the kernel said of each process. Pure: a machine gathers the texts, here or in a shell
 * elsewhere.
 */
import { findFamily } from './family.ts';
import type { FamilyMember, ProcessIdentity, ProcessLook, ProcessPresence } from './machine.ts';
import { hasEnded, type ProcessStat } from './parse-stat.ts';

export interface SeenStat extends ProcessStat {
  readonly carriesMarker: boolean;
  readonly hasEnded: boolean;
}

/** What a member is known by beside its stat; texts are '' where they may not be read. */
export interface MemberTexts {
  /** /proc/PID/cmdline, status and io. */
  readonly commandLine: string;
  readonly status: string;
  readonly io: string;
}

export type LookWithoutStatus = Omit<ProcessLook, 'exitStatus'>;

/** Where there is no /proc, nothing can be said. */
export const UNSEEN: LookWithoutStatus = {
  main: 'unknown',
  ...{ family: [], residentBytes: undefined, readBytes: undefined, cpuTicks: undefined, compilers: 0 },
};

/** The one that was recorded, and all that belong to it, the first started first. */
export function findMembers(
  found: readonly SeenStat[],
  bootId: string,
  identity: ProcessIdentity,
): { readonly main: SeenStat | undefined; readonly family: readonly SeenStat[] } {
  const main = found.find((stat) => isSame(stat, bootId, identity));
  return { main, family: findFamily(found, main?.pid) };
}

export function describeLook(
  main: SeenStat | undefined,
  members: readonly (readonly [SeenStat, MemberTexts])[],
  bootId: string,
): LookWithoutStatus {
  const loads = members.map(([, texts]) => parseLoad(texts));
  return {
    main: main === undefined ? 'gone' : presenceOf(main),
    family: members.map(([stat, { commandLine }]) => describeMember(stat, commandLine, bootId)),
    residentBytes: total(loads.map(({ residentBytes }) => residentBytes)),
    readBytes: total(loads.map(({ readBytes }) => readBytes)),
    cpuTicks: members.reduce((sum, [{ cpuTicks }]) => sum + cpuTicks, 0),
    compilers: members.filter(([{ name, state }]) => COMPILERS.has(name) && !hasEnded(state)).length,
  };
}

export function describeMember(stat: ProcessStat, commandLine: string, bootId: string): FamilyMember {
  return {
    ...{ pid: stat.pid, startTicks: stat.startTicks, bootId, command: commandOf(stat.name, commandLine) },
    ...{ parent: stat.parent, presence: presenceOf(stat), isUninterruptible: stat.state === 'D' },
  };
}

/** Arguments with spaces between; the name in brackets where there are none, as `ps` writes it. */
export function commandOf(name: string, commandLine: string): string {
  const words = commandLine.split('\0').join(' ').trim();
  return words === '' ? `[${name}]` : words;
}

/** By its presence and nothing else: for programs that were found otherwise, a holder or a parent. */
export function presenceOf({ state }: Pick<ProcessStat, 'state'>): ProcessPresence {
  return hasEnded(state) ? 'zombie' : 'running';
}

/** A program may retitle itself, so the command line is for people; pid, start and boot are what cannot change. */
export function isSame(stat: ProcessStat, bootId: string, identity: ProcessIdentity): boolean {
  return stat.pid === identity.pid && stat.startTicks === identity.startTicks && bootId === identity.bootId;
}

/** As the kernel names programs, 15 bytes at most. What an engine starts when it builds kernels at its first launch. */
const COMPILERS: ReadonlySet<string> = new Set(
  'ninja nvcc cicc ptxas cudafe++ fatbinary cc1 cc1plus gcc g++ c++ cc clang clang++ ld as hipcc'.split(' '),
);

/**
 * Bytes read: the larger of what the disk gave (`read_bytes`, which also counts pages of a mapped file) and what read() returned
 * (`rchar`, which also counts the page cache). Weights are loaded in one way or the other, and each alone may stand still.
 */
function parseLoad({ status, io }: MemberTexts): { residentBytes: number | undefined; readBytes: number | undefined } {
  const resident = /^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1];
  const [fromDisk, byRead] = ['read_bytes', 'rchar'].map((key) => new RegExp(`^${key}: (\\d+)$`, 'm').exec(io)?.[1]);
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
