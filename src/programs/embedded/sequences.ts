/**
 * Who may use which sequence of the one context. A sequence is  free → taken → free.
 *
 * A request takes the free sequence that already holds the longest beginning of its prompt (the sequence used longest
 * ago where several hold the same, so that other conversations keep theirs); when none is free it waits, first come
 * first served. A request that is aborted while it waits leaves the queue. Nothing here touches the model, so the pool
 * can be tested with plain objects.
 */

/** What the pool needs to know of a sequence. */
export interface Holder {
  /** How many of these tokens, from the first, the sequence already holds. */
  countShared(tokens: readonly number[]): number;
}

interface Waiting {
  readonly tokens: readonly number[];
  readonly grant: (slot: number) => void;
}

export class SequencePool {
  readonly #holders: readonly Holder[];
  /** Free slots, the one used longest ago first. */
  readonly #free: number[];
  readonly #queue: Waiting[] = [];

  constructor(holders: readonly Holder[]) {
    this.#holders = holders;
    this.#free = holders.map((_, slot) => slot);
  }

  get running(): number {
    return this.#holders.length - this.#free.length;
  }

  get queued(): number {
    return this.#queue.length;
  }

  /** Resolves to a slot number that is the caller's until `release`; rejects with the signal's reason. */
  take(tokens: readonly number[], signal: AbortSignal): Promise<number> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#queue.length === 0 && this.#free.length > 0) return Promise.resolve(this.#pick(tokens));
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#queue.splice(this.#queue.indexOf(waiting), 1);
        reject(signal.reason);
      };
      const waiting: Waiting = {
        tokens,
        grant: (slot) => {
          signal.removeEventListener('abort', leave);
          resolve(slot);
        },
      };
      this.#queue.push(waiting);
      signal.addEventListener('abort', leave, { once: true });
    });
  }

  release(slot: number): void {
    this.#free.push(slot);
    const next = this.#queue.shift();
    if (next !== undefined) next.grant(this.#pick(next.tokens));
  }

  #pick(tokens: readonly number[]): number {
    let best = 0;
    let bestShared = -1;
    for (const [index, slot] of this.#free.entries()) {
      const shared = this.#holders[slot]?.countShared(tokens) ?? 0;
      if (shared > bestShared) {
        best = index;
        bestShared = shared;
      }
    }
    const [slot] = this.#free.splice(best, 1);
    if (slot === undefined) throw new Error('a sequence was asked for and none was free');
    return slot;
  }
}
