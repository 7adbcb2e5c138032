/**
 * Measurements of one real launch, as its log prints them. Any subset; each one replaces a guess.
 * Engines round to two decimals, so a figure stands for an interval: `readFacts` keeps it.
 */

/** A figure and how far the truth may lie from it on either side. */
export interface Measured {
  readonly value: number;
  readonly halfWidth: number;
}

export interface Facts {
  /** `Load weight end … mem usage`. */
  readonly weightsGiBPerGpu?: Measured;
  /** `Load weight begin. avail mem`: free before the weights, after the process group is up. */
  readonly freeBeforeLoadGiB?: Measured;
  /** `Load weight end. avail mem`. */
  readonly freeAfterLoadGiB?: Measured;
  /** KV pool of one GPU (K + V). */
  readonly poolGiB?: Measured;
  /** Memory that graph capture took. */
  readonly graphsGiB?: Measured;
  /** `available_gpu_mem` of the capacity line: free once graphs are captured. */
  readonly freeAfterGraphsGiB?: Measured;
  /** vLLM's profile: CUDA's total, the peak of the dummy step beyond the weights, and what lies outside torch. */
  readonly totalGiB?: Measured;
  readonly activationsGiB?: Measured;
  readonly outsideTorchGiB?: Measured;
  /** The printed capacity: exact, but rounded down to a page. */
  readonly poolTokens?: number;
}
