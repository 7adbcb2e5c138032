/**
 * A signal that aborts when its owner does or when the time is up, and that leaves nothing behind once it is closed.
 * (`AbortSignal.timeout` inside `AbortSignal.any` keeps its timer, and the request behind it, until the time is up: an hour
 * for a long answer, times every request of that hour.)
 *
 * An owner has one listener and one sleeper however many limits it owns: a listener is added after a walk over all that are
 * there, and with 2,048 requests in flight those walks were a sixth of what a request costs.
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
  const limit = new Limit(clock.elapsed() + ms, limitsOf(owner, clock));
  if (owner.aborted) limit.abort(false);
  else limit.open();
  return limit;
}

class Limit implements TimeLimit {
  readonly #aborter = new AbortController();
  readonly #siblings: Limits;
  readonly dueMs: number;
  isUp = false;

  constructor(dueMs: number, siblings: Limits) {
    this.dueMs = dueMs;
    this.#siblings = siblings;
  }

  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  open(): void {
    this.#siblings.add(this);
  }

  abort(isUp: boolean): void {
    this.isUp = isUp;
    this.#aborter.abort();
  }

  close(): void {
    this.#siblings.delete(this);
  }
}

/** The open limits of one owner, and the one sleep until the first of them is due. */
class Limits {
  readonly #clock: Clock;
  readonly #open = new Set<Limit>();
  #sleep: { readonly untilMs: number; readonly end: AbortController } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(limit: Limit): void {
    this.#open.add(limit);
    if (limit.dueMs < (this.#sleep?.untilMs ?? Number.POSITIVE_INFINITY)) this.#sleepUntil(limit.dueMs);
  }

  /** A sleep that is then too short costs one look: the first limit that is due is closed long before, as a rule. */
  delete(limit: Limit): void {
    if (this.#open.delete(limit) && this.#open.size === 0) this.#wake();
  }

  abortAll(): void {
    this.#wake();
    for (const limit of this.#open) limit.abort(false);
    this.#open.clear();
  }

  #sleepUntil(untilMs: number): void {
    this.#wake();
    const end = new AbortController();
    this.#sleep = { untilMs, end };
    const ms = Math.min(Math.max(0, untilMs - this.#clock.elapsed()), LONGEST_MS);
    void this.#clock.sleep(ms, end.signal).then(() => {
      if (!end.signal.aborted) this.#look();
    });
  }

  #wake(): void {
    this.#sleep?.end.abort(WOKEN);
    this.#sleep = undefined;
  }

  /** Those that are due abort; the rest is slept for. */
  #look(): void {
    this.#sleep = undefined;
    const nowMs = this.#clock.elapsed();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const limit of this.#open) {
      if (limit.dueMs > nowMs) {
        nextMs = Math.min(nextMs, limit.dueMs);
        continue;
      }
      this.#open.delete(limit);
      limit.abort(true);
    }
    if (this.#open.size > 0) this.#sleepUntil(nextMs);
  }
}

/** Given as the reason, because Node makes an error with its stack for each abort without one. */
const WOKEN = 'woken';

/** The limits of an owner; they go with it. */
const owned = new WeakMap<AbortSignal, Limits>();

function limitsOf(owner: AbortSignal, clock: Clock): Limits {
  const known = owned.get(owner);
  if (known !== undefined) return known;
  const limits = new Limits(clock);
  owned.set(owner, limits);
  owner.addEventListener('abort', () => limits.abortAll(), { once: true });
  return limits;
}
