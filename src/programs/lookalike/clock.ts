/**
 * The lookalike's own clock: it can run fast, so that hours of answers pass in minutes.
 * Every latency and every `afterMs` of a scenario is in this clock's time; the journal is in real time.
 */
export interface LookalikeClock {
  /** Epoch milliseconds of the real clock, for the journal. */
  now(): number;
  /** Milliseconds of this clock since the program started. */
  elapsed(): number;
  /** Calls `act` after `ms` of this clock's time; the answer cancels it. Zero or less: on the next turn of the loop. */
  after(ms: number, act: () => void): () => void;
}

/** `setTimeout` takes a signed 32-bit number of milliseconds; more would fire at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export function startClock(rate: number): LookalikeClock {
  const startedAt = performance.now();
  return {
    now: () => Date.now(),
    elapsed: () => (performance.now() - startedAt) * rate,
    after(ms, act) {
      const timer = setTimeout(act, Math.min(Math.max(0, ms / rate), LONGEST_TIMER_MS));
      return () => clearTimeout(timer);
    },
  };
}
