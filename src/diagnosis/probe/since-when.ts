/**
 * For how long a log has shown no progress, told at one look. Pure. By the times of its own lines where these agree with the clock
 * of its machine, else by when the file was written to, which probes do too.
 */
import type { Account } from '../account.ts';
import { hasWorked } from '../account-view.ts';
import type { ProbeEvidence } from './evidence.ts';

/** A log may be of another zone or of a clock that runs ahead. */
const AHEAD_MS = 60_000;
const OLDEST_MS = 30 * 86_400_000;
/** A file's last write and the time in its last line are of one moment; more apart, and the line's clock is another one. */
const APART_MS = 15 * 60_000;

export interface Quiet {
  /** Since anything but a probe's line was written. */
  readonly writtenMs: number | undefined;
  /** Since the last sign of progress or work. */
  readonly progressMs: number | undefined;
}

export function quietOf({ log, logNow, readings }: Pick<ProbeEvidence, 'log' | 'logNow' | 'readings'>): Quiet {
  const account = readings.at(-1)?.account;
  if (account === undefined || log === undefined || account.lines === 0) return { writtenMs: undefined, progressMs: undefined };
  const { quietMs } = log;
  const last = ago(account.lastAt, logNow);
  const isSameClock = last !== undefined && (quietMs === undefined || last <= quietMs + APART_MS);
  const progress = isSameClock ? ago(account.lastProgress?.at, logNow) : undefined;
  return { writtenMs: quietMs ?? last, progressMs: progress ?? (isNewest(account) ? quietMs : undefined) };
}

/** Nothing stands behind the last sign of progress that is not a probe's. */
function isNewest(account: Account): boolean {
  return account.lastProgress === undefined ? !hasWorked(account) && account.ready === undefined : true;
}

function ago(at: number | undefined, now: number | undefined): number | undefined {
  if (at === undefined || now === undefined) return undefined;
  const ms = now - at;
  return ms < -AHEAD_MS || ms > OLDEST_MS ? undefined : Math.max(0, ms);
}

const PROBE_LINE = /"GET \/|HEALTH_CHECK|Prefill batch.*#new-seq: 1, #new-token: 1,.*#running-req: 0/;

/** Lines at the end of a log that are there because someone looked; 0 where something else is the newest. */
export function probeLinesAtEnd({ tail }: Pick<Account, 'tail'>): number {
  const lines = tail.filter(({ text }) => text.trim() !== '');
  const other = lines.findLastIndex(({ text }) => !PROBE_LINE.test(text));
  return lines.length - 1 - other;
}
