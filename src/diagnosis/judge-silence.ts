/** Whether a server stands still: by a clock, each phase by its own limit and its own signs of progress. Pure. */
import type { Account, Sighting } from './account.ts';
import { BEFORE_FIRST_SHARD_LIMIT, COMPILING_LIMIT, SILENCE_LIMIT } from './phases.ts';

export interface Silence {
  /** Since the last line, in milliseconds; undefined without a clock or without times in the log. */
  readonly forMs: number | undefined;
  readonly limitMs: number;
  readonly isTooLong: boolean;
}

/** Shards on slow storage: as long as three of them took. */
const SHARDS_WAITED = 3;

/** What silence is measured by. */
export interface JudgeOptions {
  readonly now?: number;
  /** When the log was last written to, for logs whose lines have no times. */
  readonly lastWritten?: number;
  /** Measured by who looks at the server: for how long nothing of it has moved, log or process. Overrules the clock. */
  readonly stillMs?: number;
}

export function judgeSilence(account: Account, { now, lastWritten, stillMs }: JudgeOptions): Silence {
  const limitMs = limitOf(account);
  if (stillMs !== undefined) return { forMs: stillMs, limitMs, isTooLong: stillMs > limitMs };
  const last = account.lastAt ?? lastWritten;
  const forMs = now === undefined || last === undefined || now < last ? undefined : now - last;
  return { forMs, limitMs, isTooLong: forMs !== undefined && forMs > limitMs };
}

export function limitOf({ phase, compiling, progress, secondsEach, phaseEnded, lastBar, ready, work }: Account): number {
  if (ready !== undefined || work.some(({ isProbe }) => !isProbe)) return SILENCE_LIMIT.serving;
  if (phase === '' || (phase === 'image-fetch' && phaseEnded)) return SILENCE_LIMIT['weight-loading'];
  const limit = SILENCE_LIMIT[phase];
  if (compiling !== undefined) return Math.max(limit, COMPILING_LIMIT);
  if (phase === 'weight-loading' && !phaseEnded) {
    if (lastBar === undefined) return BEFORE_FIRST_SHARD_LIMIT;
    if (progress !== undefined && progress.done < progress.of && secondsEach !== undefined)
      return Math.max(limit, SHARDS_WAITED * secondsEach * 1000);
  }
  return limit;
}

/** Notices that workers take no message, and nothing else for longer than the phase's limit. */
export function noticesTooLong(account: Account): readonly Sighting[] | undefined {
  const { notices, lastProgress } = account;
  const [first, last] = [notices[0], notices.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const since = lastProgress?.at ?? first.at;
  if (since === undefined || last.at === undefined) return undefined;
  const waited = last.at - since;
  // One notice long after everything else says as much as two.
  const isEnough = notices.length >= NOTICES || waited > SILENCE_LIMIT.serving;
  return isEnough && waited >= noticeLimit(account) ? notices : undefined;
}

/** After the start nothing takes minutes that does not print: two notices of a minute each, less the time a line takes. */
const NOTICES = 2;
const NOTICES_AT_WORK_MS = 110_000;

function noticeLimit(account: Account): number {
  const { ready, phase } = account;
  const hasStarted = ready !== undefined || hasCaptured(account) || account.work.length > 0 || account.answers.last !== undefined;
  return hasStarted || phase === 'engine-initialized' || phase === 'http-bind' ? NOTICES_AT_WORK_MS : limitOf(account);
}

/** The graphs are captured: what follows is short. */
export function hasCaptured({ phase, phaseEnded, progress }: Account): boolean {
  return phase === 'cuda-graph-capture' && (phaseEnded || (progress !== undefined && progress.done === progress.of));
}
