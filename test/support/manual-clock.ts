/** A clock that a test moves by hand: nothing sleeps longer or shorter than the test says. */
import type { Clock } from '../../src/host/host.ts';

interface Sleeper {
  readonly untilMs: number;
  readonly wake: () => void;
}

export class ManualClock implements Clock {
  #nowMs = 0;
  readonly #sleepers = new Set<Sleeper>();

  now(): number {
    return this.#nowMs;
  }

  elapsed(): number {
    return this.#nowMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const sleeper = { untilMs: this.#nowMs + ms, wake: () => this.#end(sleeper, resolve) };
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', sleeper.wake, { once: true });
    });
  }

  /** How many are asleep. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  /** Moves on, waking in order; what wakes runs before the next one does. */
  async pass(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await settle();
    for (;;) {
      const [next] = [...this.#sleepers].filter(({ untilMs }) => untilMs <= endMs).sort((a, b) => a.untilMs - b.untilMs);
      if (next === undefined) break;
      this.#nowMs = Math.max(this.#nowMs, next.untilMs);
      next.wake();
      await settle();
    }
    this.#nowMs = endMs;
  }

  #end(sleeper: Sleeper, resolve: () => void): void {
    this.#sleepers.delete(sleeper);
    resolve();
  }
}

/** Lets everything that can go on without time go on. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}
