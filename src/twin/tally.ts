/** What happened, integrated over time: the twin adds a stretch at a time, and windows are differences of two sums. */
import type { Piece } from './scheduler.ts';

export interface Sums {
  seconds: number;
  runningSeconds: number;
  queuedSeconds: number;
  /** KV tokens of running requests, times seconds. */
  contextSeconds: number;
  /** Pool tokens neither free nor evictable, times seconds (straight lines between events). */
  usedSeconds: number;
  generatedTokens: number;
  prefilledTokens: number;
  promptTokens: number;
  cachedTokens: number;
  hostCachedTokens: number;
  decodeSteps: number;
  prefillSeconds: number;
  retractions: number;
  /** Prefilled again after a retraction. */
  recomputedTokens: number;
}

export const noSums = (): Sums => ({
  ...{ seconds: 0, runningSeconds: 0, queuedSeconds: 0, contextSeconds: 0, usedSeconds: 0, generatedTokens: 0 },
  ...{ prefilledTokens: 0, promptTokens: 0, cachedTokens: 0, hostCachedTokens: 0, decodeSteps: 0, prefillSeconds: 0 },
  ...{ retractions: 0, recomputedTokens: 0 },
});

export function difference(later: Sums, earlier: Sums): Sums {
  const sums = noSums();
  for (const key of Object.keys(sums) as (keyof Sums)[]) sums[key] = later[key] - earlier[key];
  return sums;
}

/** A stretch of time in which the same requests run. */
export interface Stretch {
  readonly fromSeconds: number;
  readonly seconds: number;
  readonly running: number;
  readonly queued: number;
  readonly contextSeconds: number;
  readonly usedBefore: number;
  readonly usedAfter: number;
  readonly generatedTokens: number;
}

export class Tally {
  readonly sums = noSums();
  readonly #onStretch: ((stretch: Stretch) => void) | undefined;

  constructor(onStretch: ((stretch: Stretch) => void) | undefined) {
    this.#onStretch = onStretch;
  }

  add(stretch: Stretch): void {
    const { sums } = this;
    const { seconds } = stretch;
    sums.seconds += seconds;
    sums.runningSeconds += stretch.running * seconds;
    sums.queuedSeconds += stretch.queued * seconds;
    sums.contextSeconds += stretch.contextSeconds;
    sums.usedSeconds += ((stretch.usedBefore + stretch.usedAfter) / 2) * seconds;
    sums.generatedTokens += stretch.generatedTokens;
    this.#onStretch?.(stretch);
  }

  /** Counts the prompt tokens of a step that has ended. */
  countPrefill(pieces: readonly Piece[], seconds: number): PieceSums {
    const { sums } = this;
    for (const { sequence, newTokens, first, loadedTokens } of pieces) {
      if (sequence.produced > 0) sums.recomputedTokens += newTokens;
      if (!first) continue;
      sums.promptTokens += sequence.knownTokens;
      sums.hostCachedTokens += loadedTokens;
    }
    const counted = sumPieces(pieces);
    sums.prefillSeconds += seconds;
    sums.prefilledTokens += counted.newTokens;
    sums.cachedTokens += counted.cachedTokens;
    return counted;
  }
}

export interface PieceSums {
  readonly newSequences: number;
  readonly newTokens: number;
  readonly cachedTokens: number;
}

export function sumPieces(pieces: readonly Piece[]): PieceSums {
  let [newTokens, cachedTokens, newSequences] = [0, 0, 0];
  for (const piece of pieces) {
    newTokens += piece.newTokens;
    if (!piece.first) continue;
    newSequences += 1;
    cachedTokens += piece.before;
  }
  return { newSequences, newTokens, cachedTokens };
}
