/**
 * Before a launch: what is left of the one before is stopped, and the memory of the GPUs is back at its baseline, or it is said
 * who holds it. Nothing is ended that does not belong to a launch of Aerie's, except the one process that a person named.
 */
import { AerieError } from '../../base/errors.ts';
import { formatDuration } from '../../base/units.ts';
import { insideOf } from '../../machine/contained/inside.ts';
import type { GpuReading } from '../../machine/machine.ts';
import { untilOpen } from '../../machine/until-open.ts';
import { describeHolders } from '../describe-holders.ts';
import { awaitMemory } from '../gpu-memory.ts';
import { killHolder } from '../kill-holder.ts';
import { type LeftMember, type StopReport, stopLaunch } from '../stop-launch.ts';
import { containedOf } from './contained-launch.ts';
import { addressOfLaunch, reachLaunch } from './launch-address.ts';
import type { LaunchRecord } from './launch-book.ts';
import type { LauncherOptions } from './launcher-options.ts';

/** SIGTERM to SIGKILL; a hierarchical cache is unpinned page by page, which takes half a minute and more. */
const TERM_GRACE_MS = { usual: 30_000, hierarchicalCache: 90_000 } as const;
/** After SIGKILL: the driver gives memory back when the last thread is reaped. */
const KILL_GRACE_MS = 30_000;
/** Usually two seconds; as long as a person would wait before asking who holds it. */
const MEMORY_WITHIN_MS = 60_000;

type RoomOptions = Pick<
  LauncherOptions,
  'machine' | 'outer' | 'host' | 'name' | 'emit' | 'signal' | 'patienceMs' | 'killHolder' | 'dialect' | 'headers'
>;

/** Ends what is left of a launch; undefined for one that never came to be. */
export async function endLaunch(options: RoomOptions, record: LaunchRecord): Promise<StopReport | undefined> {
  const { host, emit, name } = options;
  if (record.identity === undefined) return undefined;
  const contained = containedOf(options.machine, record);
  const machine = contained ?? options.machine;
  const usesHost = Object.keys(record.flags).some((flag) => /^-*enable[-_]hierarchical[-_]cache$/.test(flag));
  const report = await stopLaunch({
    machine,
    launch: { identity: record.identity, marker: record.marker, statusPath: record.statusPath },
    abortRequests: (signal) => abortRequests(options, record, signal),
    termGraceMs: usesHost ? TERM_GRACE_MS.hierarchicalCache : TERM_GRACE_MS.usual,
    killGraceMs: KILL_GRACE_MS,
    clock: host.clock,
  });
  if (report.isStopped) await contained?.clear(record.marker);
  const says = describeLeft(report);
  if (!report.isStopped) emit({ kind: 'launch.memory-held', subject: name, facts: { launch: record.n, says: says.join('; ') } });
  return report;
}

/** Who of a launch is still there, and why. Those that have ended hold nothing of a GPU: they are one sentence. */
export function describeLeft({ left, isStopped }: StopReport): string[] {
  if (left.length === 0 && !isStopped) return ['whether all of it has ended cannot be seen'];
  const zombies = left.filter(({ because }) => because === 'zombie');
  const [first] = zombies;
  return [...left.flatMap(describeMember), ...(first === undefined ? [] : [describeZombies(zombies.length, first)])];
}

function describeMember(member: LeftMember): string[] {
  const { pid, command, because } = member;
  const inside = insideOf(member);
  if (inside !== undefined)
    return [`${command} still runs:  ${inside.kind === 'container' ? 'docker kill' : 'scancel'} ${inside.id.slice(0, 12)}`];
  const who = `pid ${pid} (${command.slice(0, 80)})`;
  switch (because) {
    case 'zombie':
      return [];
    case 'uninterruptible':
      return [`${who} is in the kernel and deaf to signals until it returns`];
    case 'not-permitted':
      return [`${who} belongs to another user:  sudo kill -9 ${pid}`];
    case 'ending':
      return [`${who} has had SIGKILL and is not gone yet`];
  }
}

function describeZombies(count: number, { parent, parentCommand }: LeftMember): string {
  const which = count === 1 ? '1 process of it has ended and waits' : `${count} processes of it have ended and wait`;
  return `${which} for its parent, pid ${parent} (${parentCommand.slice(0, 80)}), to take note`;
}

/** SGLang drains without an end when it is told to stop; what is in flight is asked again anyway. */
async function abortRequests(
  { dialect, host, headers, machine }: RoomOptions,
  record: LaunchRecord,
  signal: AbortSignal,
): Promise<void> {
  if (dialect.name !== 'sglang') return;
  const at = await addressOfLaunch(machine, record);
  if (at.kind !== 'listens') throw new Error(at.says);
  const reach = await reachLaunch(machine, record, at);
  const client = host.openHttp({ baseUrl: reach.baseUrl, connections: 1, headers, isDirect: true });
  try {
    await untilOpen(reach, host.clock, Number.POSITIVE_INFINITY, signal);
    await client.send({ method: 'POST', path: '/abort_request', body: JSON.stringify({ rid: '', abort_all: true }) }, signal);
  } finally {
    await client.close();
    await reach.close();
  }
}

/** Throws `server.gave-up` where others hold the memory for longer than the run's patience. */
export async function awaitFreeMemory(options: RoomOptions, baseline: readonly GpuReading[], marker?: string): Promise<void> {
  const { machine, outer, host, emit, name, patienceMs, signal } = options;
  const beganAt = host.clock.elapsed();
  let [isTold, wasTold] = [false, false];
  for (;;) {
    const memory = await awaitMemory({
      ...{ machine, outer, baseline, clock: host.clock, withinMs: MEMORY_WITHIN_MS, ours: marker, signal },
    });
    if (memory.kind === 'free') {
      if (wasTold) emit({ kind: 'launch.memory-free', subject: name, facts: {} });
      return;
    }
    if (signal.aborted) return;
    const sentences = describeHolders(memory, outer?.name);
    if (!isTold) emit({ kind: 'launch.memory-held', subject: name, facts: { says: sentences.join('\n  ') } });
    wasTold = true;
    isTold = !(await endNamedHolder(options, baseline)); // where one has ended, who holds what is left is told anew
    if (!isTold) continue;
    const waitedMs = host.clock.elapsed() - beganAt;
    if (waitedMs > patienceMs) throw memoryHeld(name, sentences, waitedMs);
  }
}

/** Whether a person named one and it has ended. */
export async function endNamedHolder(options: RoomOptions, baseline: readonly GpuReading[]): Promise<boolean> {
  const { machine, outer, host, signal, killHolder: pid, emit, name } = options;
  if (pid === undefined) return false;
  const graces = { termGraceMs: TERM_GRACE_MS.usual, killGraceMs: KILL_GRACE_MS, withinMs: MEMORY_WITHIN_MS };
  const outcome = await killHolder({ machine, outer, pid, baseline, clock: host.clock, signal, ...graces });
  const says = {
    ended: `pid ${pid}, which was named, has ended`,
    'not-a-holder': `pid ${pid}, which was named, holds no memory of a GPU and was left alone`,
    'out-of-reach': `pid ${pid} cannot be ended from here`,
    stays: `pid ${pid} does not end`,
  };
  emit({ kind: 'launch.preflight', subject: name, facts: { says: says[outcome.kind] } });
  return outcome.kind === 'ended';
}

/** What is above the baseline now, as sentences; empty = free. */
export async function lookAtMemory(options: RoomOptions, baseline: readonly GpuReading[], marker?: string): Promise<string[]> {
  const { machine, outer, host } = options;
  const memory = await awaitMemory({ machine, outer, baseline, clock: host.clock, withinMs: MEMORY_WITHIN_MS, ours: marker });
  return memory.kind === 'free' ? [] : describeHolders(memory, outer?.name);
}

function memoryHeld(name: string, evidence: readonly string[], waitedMs: number): AerieError {
  const waited = formatDuration(waitedMs);
  return new AerieError('server.gave-up', `${name} cannot be started: others have held its GPU memory for ${waited}.`, {
    evidence,
    remedy:
      'Ask whoever holds it to end it, or name it: the same command with --kill-holder PID. What is committed is safe; the same command resumes.',
  });
}
