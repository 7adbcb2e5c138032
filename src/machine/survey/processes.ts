/** The table of processes of a survey: who is there, who belongs to whom, how much they hold and read. Pure. */
import { findFamily } from '../family.ts';
import { hasEnded, type ProcessStat, parseStat } from '../parse-stat.ts';

export interface SurveyedProcess extends ProcessStat {
  readonly argv: readonly string[];
  /** Arguments with spaces between; the name in brackets where there are none. */
  readonly command: string;
  readonly residentBytes: number;
  /** undefined: it may not be read. */
  readonly readBytes: number | undefined;
}

export type ProcessTable = ReadonlyMap<number, SurveyedProcess>;

export interface ProcessTexts {
  readonly stat: string;
  /** As `head -v` writes them: a line `==> /proc/PID/…` before each. */
  readonly cmd: string;
  readonly io: string;
  readonly pageBytes: number;
}

export function readProcesses({ stat, cmd, io, pageBytes }: ProcessTexts): ProcessTable {
  const commands = byPid(cmd);
  const inputs = byPid(io);
  const table = new Map<number, SurveyedProcess>();
  for (const line of joinBroken(stat.split('\n'))) {
    const found = parseStat(line);
    if (found === undefined) continue;
    const argv = (commands.get(found.pid) ?? '')
      .replace(/\0+$/, '')
      .split('\0')
      .filter((word) => word !== '');
    const pages = Number(line.slice(line.lastIndexOf(')') + 2).split(' ')[21]); // field 24
    table.set(found.pid, {
      ...found,
      ...{ argv, command: argv.length === 0 ? `[${found.name}]` : argv.join(' ') },
      residentBytes: Number.isSafeInteger(pages) ? pages * pageBytes : 0,
      readBytes: readBytes(inputs.get(found.pid)),
    });
  }
  return table;
}

/** A program may have a line feed in its name. */
function joinBroken(lines: readonly string[]): string[] {
  const joined: string[] = [];
  for (const line of lines) {
    if (/^\d+ \(/.test(line) || joined.length === 0) joined.push(line);
    else joined[joined.length - 1] += `\n${line}`;
  }
  return joined;
}

function byPid(text: string): Map<number, string> {
  const found = new Map<number, string>();
  const parts = text.split(/^==> \/proc\/(\d+)\/\w+ <==\n/m);
  for (let at = 1; at + 1 < parts.length; at += 2) {
    const pid = Number(parts[at]);
    // The first one is the kernel's; what a command line holds comes later.
    if (!found.has(pid)) found.set(pid, (parts[at + 1] ?? '').replace(/\n\n?$/, ''));
  }
  return found;
}

/** As `machine/local/observe.ts` counts: weights are read by read() or by mapped pages. */
function readBytes(io: string | undefined): number | undefined {
  const [fromDisk, byRead] = ['read_bytes', 'rchar'].map((key) => new RegExp(`^${key}: (\\d+)$`, 'm').exec(io ?? '')?.[1]);
  return fromDisk === undefined || byRead === undefined ? undefined : Math.max(Number(fromDisk), Number(byRead));
}

/** As the kernel names programs. What an engine starts when it builds kernels at its first launch. */
const COMPILERS: ReadonlySet<string> = new Set(
  'ninja nvcc cicc ptxas cudafe++ fatbinary cc1 cc1plus gcc g++ c++ cc clang clang++ ld as hipcc'.split(' '),
);

export interface FamilySigns {
  readonly members: readonly SurveyedProcess[];
  readonly residentBytes: number;
  readonly readBytes: number | undefined;
  readonly compilers: number;
  /** Living processes beside the main one. */
  readonly children: number;
  /** Those that sit in the kernel and cannot be ended. */
  readonly uninterruptible: readonly number[];
}

export function familyOf(table: ProcessTable, pid: number): FamilySigns {
  const rows = [...table.values()].map((one) => ({ ...one, carriesMarker: false, hasEnded: hasEnded(one.state) }));
  const members = table.has(pid) ? findFamily(rows, pid) : [];
  const read = members.flatMap(({ readBytes: bytes }) => bytes ?? []);
  return {
    members,
    residentBytes: members.reduce((sum, { residentBytes }) => sum + residentBytes, 0),
    readBytes: read.length === 0 ? undefined : read.reduce((sum, bytes) => sum + bytes, 0),
    compilers: members.filter(({ name, state }) => COMPILERS.has(name) && !hasEnded(state)).length,
    children: Math.max(0, members.filter(({ state }) => !hasEnded(state)).length - 1),
    uninterruptible: members.filter(({ state }) => state === 'D').map(({ pid: member }) => member),
  };
}

/** Ranks of an engine whose server is gone: they hold GPU memory until they are ended. */
export function orphanRanks(table: ProcessTable): SurveyedProcess[] {
  return [...table.values()].filter(
    ({ command, parent, state }) =>
      /^(sglang::|VLLM::)/.test(command) && (parent === 1 || !table.has(parent)) && !hasEnded(state),
  );
}
