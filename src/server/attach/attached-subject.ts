/**
 * The server that answers at an attachment, as far as its machine shows it: where its log is, how far that is read, and which process
 * it is. Questions alone; nothing here is signalled.
 * On failure: what cannot be seen is undefined. Throws `machine.unreachable` alone.
 */
import type { ProcessSigns } from '../../diagnosis/live/look.ts';
import type { LoggedEngine } from '../../diagnosis/log-facts.ts';
import type { Machine, ProcessIdentity } from '../../machine/machine.ts';
import { parseStat } from '../../machine/parse-stat.ts';
import type { LogSource } from '../launch/log-source.ts';
import { signsOf } from '../launch/process-signs.ts';
import { flagsOfCommand } from './command-words.ts';
import { inspectContainer } from './find-log.ts';
import { openServerLog } from './read-server-log.ts';
import type { ServerLog } from './server-log.ts';

export interface AttachedSubject {
  readonly log: ServerLog;
  /** undefined: there is none that may be read, or it is another server's. */
  readonly source: LogSource | undefined;
  /** undefined: its process cannot be seen, or what listens may be a proxy. */
  readonly identity: ProcessIdentity | undefined;
}

/** Whether one is the other, as far as its place tells: the same start of the same container, the same file. */
export function isSameSubject(one: AttachedSubject, other: AttachedSubject): boolean {
  return placeOf(one) === placeOf(other);
}

function placeOf({ log }: AttachedSubject): string {
  const { container } = log;
  return `${container?.id} ${container?.startedAt} ${log.kind} ${log.kind === 'file' ? log.path : ''}`;
}

/** `isItsLog`: what the process writes was seen to be the server's log, so the process is the server. */
export async function openSubject(
  machine: Pick<Machine, 'run'>,
  log: ServerLog,
  source: LogSource | undefined,
  isItsLog: boolean,
): Promise<AttachedSubject> {
  const { process, container } = log;
  const isServer = isItsLog || Object.keys(flagsOfCommand(process?.words ?? [])).length > 0;
  const pid = container === undefined ? (isServer ? process?.pid : undefined) : container.pid;
  const identity = pid === undefined || pid === 0 ? undefined : await identify(machine, pid);
  return { log, source, identity };
}

/** `sh -c SCRIPT sh PID`: what cannot change of a process; nothing where it may not be seen. */
const IDENTITY_SCRIPT = 'cat /proc/sys/kernel/random/boot_id "/proc/$1/stat" 2>/dev/null; exit 0';
const ASK_MS = 20_000;

async function identify(machine: Pick<Machine, 'run'>, pid: number): Promise<ProcessIdentity | undefined> {
  const result = await machine.run({ file: 'sh', args: ['-c', IDENTITY_SCRIPT, 'sh', String(pid)], timeoutMs: ASK_MS });
  if (result.kind !== 'ended') return undefined;
  const [bootId = '', ...rest] = result.stdout.split('\n');
  const stat = parseStat(rest.join('\n'));
  if (stat === undefined || stat.pid !== pid) return undefined;
  return { pid, startTicks: stat.startTicks, bootId: bootId.trim(), command: stat.name };
}

/** Whoever started it again wrote over its file: what is in it now is another log. undefined: nobody did. */
export async function reopenCutShort(
  machine: Pick<Machine, 'run' | 'readFile'>,
  subject: AttachedSubject | undefined,
  engine: LoggedEngine,
): Promise<AttachedSubject | undefined> {
  if (subject?.log.kind !== 'file' || subject.source === undefined) return undefined;
  const there = await machine.readFile(subject.log.readPath, 0, 1);
  if (there === undefined || there.size >= subject.source.bytes) return undefined;
  return { ...subject, identity: undefined, source: await openServerLog(machine, subject.log, engine) };
}

/** It carries no marker of Aerie's, and nobody writes its exit status down. */
const NO_LAUNCH = { marker: 'none', statusPath: '/dev/null' } as const;

/** undefined: nothing tells how its process is. */
export async function lookAtSubject(
  machine: Machine,
  { identity, log: { container } }: AttachedSubject,
  gpuUsedMiB: number | undefined,
): Promise<ProcessSigns | undefined> {
  const seen = identity === undefined ? undefined : signsOf(await machine.look(identity, NO_LAUNCH), gpuUsedMiB);
  if (container === undefined || (seen !== undefined && seen.presence !== 'gone' && seen.presence !== 'zombie')) return seen;
  const now = await inspectContainer(machine, container.id);
  if (now === undefined) return seen;
  const isSameStart = now.startedAt === container.startedAt;
  if (now.state === 'running' && isSameStart) return seen ?? UNMEASURED;
  if (!isSameStart) return { ...UNMEASURED, presence: 'gone' };
  if (now.state !== 'exited' && now.state !== 'dead') return seen;
  const says = `container ${now.name} is ${now.state}, exit status ${now.exitCode}${now.isOutOfMemory ? ', out of memory' : ''}`;
  return {
    ...UNMEASURED,
    ...{ presence: 'gone', exitStatus: now.exitCode, end: { says, isOutOfMemory: now.isOutOfMemory } },
  };
}

const UNMEASURED: ProcessSigns = {
  presence: 'running',
  ...{ exitStatus: undefined, residentBytes: undefined, readBytes: undefined, gpuUsedMiB: undefined },
  ...{ compilers: 0, children: undefined },
};
