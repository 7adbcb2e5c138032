/**
 * Who works on a run: the name beside the lock, and whether that process is still the one that wrote it. The lock itself is not
 * touched, because a look must never be in the way of a worker that starts.
 */
import { hostname } from 'node:os';
import { systemCodeOf } from '../base/errors.ts';
import type { Host } from '../host/host.ts';
import { type Holder, readHolder } from '../ledger/sqlite/worker-lock.ts';
import { readBootId, readStat } from '../machine/local/proc.ts';
import { hasEnded } from '../machine/parse-stat.ts';
import { logOf } from './detach/worker-log.ts';

export interface Worker {
  readonly pid: number;
  readonly host: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  readonly isDetached: boolean;
  /** Where its words go; '' = into its terminal. */
  readonly log: string;
  /** It was asked to end, and finishes what is in flight. */
  readonly isDraining: boolean;
  /** `unknown`: it is of another machine or container, and from here it cannot be seen. */
  readonly presence: 'running' | 'unknown';
}

/** The name that this process leaves beside the lock of a run. */
export async function nameHolder(folder: string, host: Host, isDetached = false): Promise<Holder> {
  const [stat, bootId] = await Promise.all([readStat(host.pid), readBootId()]);
  const identity = stat === undefined || bootId === '' ? {} : { startTicks: stat.startTicks, bootId };
  const place = isDetached ? { isDetached, log: logOf(folder) } : {};
  return { pid: host.pid, host: hostname(), startedAt: host.clock.now(), ...identity, ...place };
}

/** undefined: nobody. */
export async function workerOf(folder: string): Promise<Worker | undefined> {
  const holder = readHolder(folder);
  if (holder === undefined) return undefined;
  const presence = await presenceOf(holder);
  if (presence === 'gone') return undefined;
  const { pid, host, startedAt, isDetached = false, log = '', isDraining = false } = holder;
  return { pid, host, startedAt, isDetached: isDetached === true, log, isDraining: isDraining === true, presence };
}

async function presenceOf({ pid, host, startTicks, bootId }: Holder): Promise<'running' | 'unknown' | 'gone'> {
  const isOurs = host === hostname();
  if (startTicks === undefined || bootId === undefined) return isOurs ? presenceByPid(pid) : 'unknown';
  const [stat, now] = await Promise.all([readStat(pid), readBootId()]);
  if (now === bootId && stat?.startTicks === startTicks) return hasEnded(stat.state) ? 'gone' : 'running';
  // Two containers of one machine have other names and other pids.
  return isOurs ? 'gone' : 'unknown';
}

/** Where the system does not tell when a process began: a later one with the same pid is taken for it. */
function presenceByPid(pid: number): 'running' | 'gone' {
  try {
    process.kill(pid, 0);
    return 'running';
  } catch (thrown) {
    return systemCodeOf(thrown) === 'EPERM' ? 'running' : 'gone';
  }
}
