/**
 * A survey as values: what was seen, and what was not, with the command for someone who may. Pure.
 * Promise: what was late, forbidden or absent is said so and never taken for nothing.
 */
import { containerOf } from '../cgroup.ts';
import type { GpuLook } from '../machine.ts';
import { type ComputeApp, parseComputeApps, parseGpus } from '../nvidia-smi.ts';
import { type EngineProcess, findEngines } from './find-engines.ts';
import { type KernelLine, readKernelLines } from './kernel-lines.ts';
import { type ProcessTable, readProcesses } from './processes.ts';
import { type SurveyPart, type SurveyParts, unpack } from './read-survey.ts';
import { NOT_A_FILE, NOT_INSTALLED, NOT_PERMITTED } from './survey-functions.ts';
import type { SurveyQuestion } from './survey-script.ts';

export interface SurveyedLog {
  /** The path that was asked for, and where it leads. */
  readonly path: string;
  readonly realPath: string;
  /** read: a file that may be read. other: a pipe, a terminal. */
  readonly kind: 'read' | 'absent' | 'other' | 'not-permitted' | 'late';
  readonly bytes: number;
  /** Epoch milliseconds of its machine. */
  readonly modifiedAt: number;
  /** Device and inode: one file has one. */
  readonly file: string;
  readonly beginning: Buffer;
  /** Its last bytes, and the byte that they begin at. */
  readonly ending: { readonly from: number; readonly bytes: Buffer };
  /** What it has grown by since `from`. */
  readonly grown: Buffer;
  /** Line feeds and bytes of all of it, when they were counted; undefined = they were not in time. */
  readonly counted: { readonly lines: number; readonly bytes: number } | undefined;
}

export interface MemoryGroup {
  readonly container: string;
  readonly limitBytes: number | undefined;
  readonly usedBytes: number | undefined;
  /** Processes it has ended; undefined = not told. */
  readonly oomKills: number | undefined;
}

export interface ProcessDetail {
  readonly memory: MemoryGroup;
  /** Inodes of its sockets. */
  readonly sockets: ReadonlySet<string>;
  /** Where its stdout goes. */
  readonly stdout: string;
  readonly log: SurveyedLog | undefined;
}

export interface Survey {
  /** Epoch milliseconds by the clock of the machine, and how far its wall clock is ahead of UTC. */
  readonly now: number;
  readonly zoneMs: number;
  readonly uptimeMs: number;
  readonly bootId: string;
  /** Every process of the machine is in the table: it was read by root, or hides none, from outside of all containers. */
  readonly seesAll: boolean;
  readonly tickMs: number;
  readonly table: ProcessTable;
  readonly engines: readonly EngineProcess[];
  /** Lines of /proc/net/tcp and tcp6 of ports that listen. */
  readonly listeners: string;
  readonly logs: ReadonlyMap<string, SurveyedLog>;
  readonly files: ReadonlyMap<string, string>;
  readonly details: ReadonlyMap<number, ProcessDetail>;
  /** Of the shell that surveyed: of the machine, or of the container that it is. */
  readonly ownMemory: MemoryGroup;
  readonly gpus: GpuLook | undefined;
  readonly apps: readonly ComputeApp[];
  readonly kernel: readonly KernelLine[];
  /** What was not seen, each with the command for someone who may. */
  readonly unseen: readonly string[];
}

export function interpretSurvey({ parts, isWhole }: SurveyParts, question: SurveyQuestion): Survey {
  const text = (name: string) => (parts.get(name)?.bytes ?? Buffer.alloc(0)).toString('utf8');
  const [time = '', uptime = '', bootId = '', user = '', page = '', tick = '', namespace = ''] = text('host').split('\n');
  const [seconds, zone = ''] = time.split(' ');
  const table = readProcesses({ stat: text('stat'), cmd: text('cmd'), io: text('io'), pageBytes: Number(page) || 4096 });
  const details = new Map<number, ProcessDetail>();
  for (const name of parts.keys()) {
    const pid = Number(/^p(\d+)$/.exec(name)?.[1] ?? 0);
    if (pid > 0) details.set(pid, readDetail(pid, parts, table));
  }
  return {
    now: Number(seconds) * 1000 || 0,
    zoneMs: readZone(zone),
    uptimeMs: Number(uptime.split(' ')[0]) * 1000 || 0,
    bootId,
    seesAll: namespace === FIRST_PID_NAMESPACE && table.has(1) && parts.get('stat')?.status === 0,
    tickMs: 1000 / (Number(tick) || 100),
    table,
    engines: findEngines(wholeCommands(table, parts)),
    listeners: text('ports'),
    logs: new Map(question.logs.map(({ name, path }) => [name, readLog(name, path, parts)])),
    files: new Map(question.files.flatMap(({ name }) => (parts.get(`f${name}`)?.status === 0 ? [[name, text(`f${name}`)]] : []))),
    details,
    ownMemory: readMemory(text('self')),
    gpus: question.isWhole ? readGpus(parts.get('gpus')) : undefined,
    apps: parts.get('apps')?.status === 0 ? parseComputeApps(text('apps')).apps : [],
    kernel: readKernelLines(text('kernel')),
    unseen: unseenOf(parts, question, { isWhole, isRoot: user === '0', isEmpty: table.size === 0 }),
  };
}

/** The pid namespace that a kernel starts with: PROC_PID_INIT_INO. */
const FIRST_PID_NAMESPACE = 'pid:[4026531836]';

function readZone(text: string): number {
  const [, sign, hours, minutes] = /^([+-])(\d\d)(\d\d)$/.exec(text) ?? [];
  return (sign === '-' ? -1 : 1) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000;
}

/** Long command lines are told whole for those that were looked into. */
function wholeCommands(table: ProcessTable, parts: SurveyParts['parts']): ProcessTable {
  const whole = new Map(table);
  for (const [pid, process] of table) {
    const part = parts.get(`c${pid}`);
    if (part?.status !== 0 || part.bytes.length === 0) continue;
    const argv = part.bytes
      .toString('utf8')
      .split('\0')
      .filter((word) => word !== '');
    if (argv.length > 0) whole.set(pid, { ...process, argv, command: argv.join(' ') });
  }
  return whole;
}

function readDetail(pid: number, parts: SurveyParts['parts'], table: ProcessTable): ProcessDetail {
  const said = (parts.get(`p${pid}`)?.bytes ?? Buffer.alloc(0)).toString('utf8');
  const stdout = said.slice(said.lastIndexOf('\n== stdout\n') + '\n== stdout\n'.length).trim();
  const sockets = new Set([...said.matchAll(/^socket:\[(\d+)\]$/gm)].map(([, inode]) => inode ?? ''));
  const log = parts.has(`le${pid}`) && table.has(pid) ? readLog(`e${pid}`, stdout, parts) : undefined;
  return { memory: readMemory(said), sockets, stdout, log };
}

function readLog(name: string, path: string, parts: SurveyParts['parts']): SurveyedLog {
  const size = parts.get(`l${name}`);
  const bytesOf = (letter: string) => parts.get(`${letter}${name}`)?.bytes ?? Buffer.alloc(0);
  const [facts = '', ...where] = (size?.bytes ?? Buffer.alloc(0)).toString('utf8').trimEnd().split('\n');
  const [type = '', bytes, modified, file = ''] = facts.split('|');
  const known = {
    ...{ path, realPath: where.join('\n') || path, bytes: Number(bytes) || 0, modifiedAt: Number(modified) * 1000 || 0, file },
    ...{ beginning: bytesOf('h'), ending: readEnding(bytesOf('t')), grown: bytesOf('g') },
    counted: readCount(parts.get(`w${name}`)),
  };
  if (size === undefined || size.status === undefined) return { ...known, kind: 'late' };
  if (size.status !== 0) return { ...known, kind: /ermission/.test(facts) ? 'not-permitted' : 'absent' };
  if (!type.startsWith('regular')) return { ...known, kind: 'other' };
  const read = parts.get(`h${name}`) ?? parts.get(`g${name}`);
  if (read !== undefined && read.status === undefined && read.bytes.length === 0) return { ...known, kind: 'late' };
  return { ...known, kind: read?.status === NOT_A_FILE ? 'not-permitted' : 'read' };
}

function readEnding(said: Buffer): SurveyedLog['ending'] {
  const eol = said.indexOf('\n');
  const [, from] = /^(\d+) \d+$/.exec(said.subarray(0, Math.max(0, eol)).toString('latin1')) ?? [];
  return from === undefined ? { from: 0, bytes: Buffer.alloc(0) } : { from: Number(from), bytes: unpack(said.subarray(eol + 1)) };
}

function readCount(part: SurveyPart | undefined): SurveyedLog['counted'] {
  const [, lines, bytes] = /^\s*(\d+)\s+(\d+)/.exec(part?.status === 0 ? part.bytes.toString('utf8') : '') ?? [];
  return lines === undefined ? undefined : { lines: Number(lines), bytes: Number(bytes) };
}

function readMemory(said: string): MemoryGroup {
  const value = (names: readonly string[]) => {
    for (const name of names) {
      const found = new RegExp(`^== memory\\.${name}\\n(\\d+)$`, 'm').exec(said)?.[1];
      // Version 1 writes a number near 2^63 where there is no limit.
      if (found !== undefined && Number(found) < 2 ** 60) return Number(found);
    }
    return undefined;
  };
  const kills = /^oom_kill (\d+)$/m.exec(said)?.[1];
  const cgroup = said.slice(0, said.indexOf('== memory') < 0 ? undefined : said.indexOf('== memory'));
  return {
    container: containerOf(cgroup),
    limitBytes: value(['max', 'limit_in_bytes']),
    usedBytes: value(['current', 'usage_in_bytes']),
    oomKills: kills === undefined ? undefined : Number(kills),
  };
}

function readGpus(part: SurveyPart | undefined): GpuLook | undefined {
  if (part?.status === undefined) return undefined;
  if (part.status === NOT_INSTALLED) return { kind: 'absent' };
  const said = part.bytes.toString('utf8');
  return part.status === 0
    ? parseGpus(said)
    : { kind: 'failed', because: `nvidia-smi ended with ${part.status}: ${said.trim().split('\n')[0] ?? ''}` };
}

interface Around {
  readonly isWhole: boolean;
  readonly isRoot: boolean;
  readonly isEmpty: boolean;
}

function unseenOf(parts: SurveyParts['parts'], question: SurveyQuestion, { isWhole, isEmpty }: Around): string[] {
  const status = (name: string) => parts.get(name)?.status;
  const isLate = (name: string) => parts.has(name) && status(name) === undefined;
  const late = `was not there in ${question.waitSeconds} s`;
  return [
    ...(isWhole ? [] : ['the survey of the machine did not come to its end']),
    ...(isEmpty ? [`processes: ${isLate('stat') ? `/proc ${late}` : 'there is no /proc that can be read'}`] : []),
    ...(isLate('gpus') ? [`GPUs: nvidia-smi ${late}. On that machine:  nvidia-smi`] : []),
    ...(question.isWhole && status('kernel') === NOT_PERMITTED
      ? ['what the kernel wrote (ended processes, GPU faults): not permitted. Try:  sudo dmesg -T']
      : []),
    ...(isLate('kernel') ? [`what the kernel wrote: dmesg ${late}. Try:  sudo dmesg -T`] : []),
  ];
}
