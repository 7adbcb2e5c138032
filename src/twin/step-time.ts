/**
 * How long one step takes. Decode: fixed + weights that the batch touches + KV that it reads + a cost per request
 * (docs/twin.md; the form is that of published fits on 5,221 measured rows). Prefill: per token, and per token pair.
 *
 * All figures are seconds, already divided by bandwidth: the twin needs no GPU. `calibrate.ts` makes them from measured points.
 */

export interface StepTime {
  /** Launch, all-reduces, sampling: what a step costs with nobody in it. */
  readonly fixedSeconds: number;
  /** Reading all weights that every batch reads. */
  readonly denseSeconds: number;
  /** Reading all routed experts once; a batch of B reads 1 − (1 − share)^B of them. 0 = no experts. */
  readonly expertSeconds: number;
  readonly expertShare: number;
  readonly perRequestSeconds: number;
  /** Reading the KV of one token of context. */
  readonly perContextTokenSeconds: number;
  /** Added to a step without a captured graph. */
  readonly eagerSeconds: number;
  readonly prefill: PrefillTime;
}

export interface PrefillTime {
  readonly perTokenSeconds: number;
  /** Times n·(p + n/2) for n new tokens after p that are there already. */
  readonly perTokenPairSeconds: number;
  /** A prefill step of its own reads the weights too: it takes no less than this. */
  readonly leastSeconds: number;
}

/** One decode step of `batch` requests without their context, graphs left aside. */
export function batchSeconds(time: StepTime, batch: number): number {
  const touched = 1 - (1 - time.expertShare) ** batch;
  return time.fixedSeconds + time.denseSeconds + time.expertSeconds * touched + time.perRequestSeconds * batch;
}

/** The captured size that a batch is padded to; undefined = above the largest: eager. */
export function paddedBatch(sizes: readonly number[], batch: number): number | undefined {
  let [low, high] = [0, sizes.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sizes[middle] ?? 0) >= batch) high = middle;
    else low = middle + 1;
  }
  return sizes[low];
}

/** The same with graphs: padded to the next captured size, or eager above the largest. */
export function decodeBaseSeconds(time: StepTime, sizes: readonly number[], batch: number): number {
  const padded = paddedBatch(sizes, batch);
  return padded === undefined ? batchSeconds(time, batch) + time.eagerSeconds : batchSeconds(time, padded);
}

/** `steps` decode steps in a row of a batch whose context grows by one token each per step; `context` = before the first. */
export function decodeSeconds(base: number, perContextToken: number, steps: number, batch: number, context: number): number {
  return steps * base + perContextToken * (steps * context + (batch * steps * (steps + 1)) / 2);
}

export interface PrefillPiece {
  readonly newTokens: number;
  readonly before: number;
}

/** All new tokens of a step, without its floor: in a step with decodes the weights are read anyway. */
export function prefillSeconds(time: PrefillTime, pieces: readonly PrefillPiece[]): number {
  let seconds = 0;
  for (const { newTokens, before } of pieces)
    seconds += newTokens * time.perTokenSeconds + newTokens * (before + newTokens / 2) * time.perTokenPairSeconds;
  return seconds;
}

/** The largest k in 0…limit for which `fits(k)`; fits(0) is taken for granted and fits never comes back once lost. */
export function largest(limit: number, fits: (k: number) => boolean): number {
  if (fits(limit)) return limit;
  let [low, high] = [0, limit];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}
