/**
 * A signal that aborts when its owner does or when the time is up, and that leaves nothing behind once it is closed.
 * (`AbortSignal.timeout` inside `AbortSignal.any` keeps its timer, and the request behind it, until the time is up: an hour
 * for a long answer, times every request of that hour.)
 *
 * An owner has one listener however many limits it owns: a listener is added after a walk over all that are there, and with 2,048
 * requests in flight those walks were a sixth of what a request costs.
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
/** Given as the reason, because Node makes an error with its stack for each abort without one. */
const CLOSED = 'closed';

export function openTimeLimit(clock: Clock, ms: number, owner: AbortSignal): TimeLimit {
  const limit = new AbortController();
  const closed = new AbortController();
  let isUp = false;
  const onOwner = () => limit.abort();
  const limits = limitsOf(owner);
  if (owner.aborted) limit.abort();
  else limits.add(onOwner);
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
      limits.delete(onOwner);
      closed.abort(CLOSED);
    },
  };
}

/** What to tell when an owner aborts, by owner; it goes with its owner. */
const owned = new WeakMap<AbortSignal, Set<() => void>>();

function limitsOf(owner: AbortSignal): Set<() => void> {
  const known = owned.get(owner);
  if (known !== undefined) return known;
  const limits = new Set<() => void>();
  owned.set(owner, limits);
  const onAbort = () => {
    for (const tell of limits) tell();
    limits.clear();
  };
  owner.addEventListener('abort', onAbort, { once: true });
  return limits;
}
