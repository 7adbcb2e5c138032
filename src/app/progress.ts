/** The numbers of a run under way, and what they say about the time that is left. Pure. */
export interface PartitionProgress {
  readonly name: string;
  readonly enrolled: number;
  readonly enrolmentOpen: boolean;
  readonly done: number;
  readonly aside: number;
  readonly dropped: number;
  readonly answers: number;
  readonly truncated: number;
  readonly spentTokens: number;
  readonly budget: number;
}

export interface Progress {
  readonly partitions: readonly PartitionProgress[];
  readonly inFlight: number;
  readonly gate: number;
  /** Generated tokens per second over the last minute; 0 before the first answer. */
  readonly tokensPerS: number;
  readonly elapsedMs: number;
  /** Time left as a range; undefined before the first answers. */
  readonly remainingMs: { readonly low: number; readonly high: number } | undefined;
  readonly draining: boolean;
}

export interface RateSample {
  readonly elapsedMs: number;
  readonly tokens: number;
}

/** Long enough that one slow answer does not move it, short enough to follow a change. */
export const RATE_WINDOW_MS = 60_000;

/** Tokens per second between the oldest sample inside the window and the newest. */
export function computeRate(samples: readonly RateSample[]): number {
  const last = samples.at(-1);
  if (last === undefined) return 0;
  const first = samples.find(({ elapsedMs }) => last.elapsedMs - elapsedMs <= RATE_WINDOW_MS) ?? last;
  const ms = last.elapsedMs - first.elapsedMs;
  return ms < 1000 ? 0 : ((last.tokens - first.tokens) * 1000) / ms;
}

/**
 * Time left = tokens still to come ÷ rate. Tokens to come of a partition = its open prompts × its mean tokens per finished
 * prompt (of the whole run where it has none), at most what its budget leaves. ± 30 % in the beginning, ± 10 % once
 * a hundred prompts are done: answer lengths spread by about their mean.
 */
export function estimateRemaining(partitions: readonly PartitionProgress[], tokensPerS: number): Progress['remainingMs'] {
  const done = partitions.reduce((sum, partition) => sum + partition.done, 0);
  const spent = partitions.reduce((sum, partition) => sum + partition.spentTokens, 0);
  if (done === 0 || tokensPerS <= 0) return undefined;
  const tokens = partitions.reduce((sum, partition) => {
    const open = Math.max(0, partition.enrolled - partition.done - partition.aside - partition.dropped);
    const mean = partition.done >= 10 ? partition.spentTokens / partition.done : spent / done;
    const wanted = open * mean;
    return sum + (partition.budget > 0 ? Math.min(wanted, Math.max(0, partition.budget - partition.spentTokens)) : wanted);
  }, 0);
  const ms = (tokens / tokensPerS) * 1000;
  const spread = done >= 100 ? 0.1 : 0.3;
  return { low: ms * (1 - spread), high: ms * (1 + spread) };
}
