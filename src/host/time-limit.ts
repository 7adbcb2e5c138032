/**
 * A signal that aborts when its owner does or when the time is up, and that leaves nothing behind once it is closed.
 * (`AbortSignal.timeout` inside `AbortSignal.any` keeps its timer, and the request behind it, until the time is up: an hour
 * for a long answer, times every request of that hour.)
 */
import type { Clock } from './host.ts';

export interface TimeLimit {
  readonly signal: AbortSignal;
  /** The time was up before the owner gave up. */
  readonly isUp: boolean;
  close(): void;
}

/** The longest a Node timer can wait; longer ones would fire at once. */
const LONGEST_MS = 2 ** 31 - 1;

export function openTimeLimit(clock: Clock, ms: number, owner: AbortSignal): TimeLimit {
  const limit = new AbortController();
  const closed = new AbortController();
  let isUp = false;
  const onOwner = () => limit.abort();
  if (owner.aborted) limit.abort();
  else owner.addEventListener('abort', onOwner, { once: true });
  void clock.sleep(Math.min(ms, LONGEST_MS), closed.signal).then(() => {
    if (closed.signal.aborted || limit.signal.aborted) return;
    isUp = true;
    limit.abort();
  });
  return {
    signal: limit.signal,
    get isUp() {
      return isUp;
    },
    close() {
      owner.removeEventListener('abort', onOwner);
      closed.abort();
    },
  };
}
