/** What a plan says about one launch. Every figure is per GPU unless it says otherwise. Pure types. */

/**
 * - `fits`: starts, and a full prefill chunk has room after graph capture.
 * - `refuses-to-start`: the engine stops while it loads, sizes its pool or captures graphs.
 * - `dies-under-load`: starts, and the first large prefill has not enough memory.
 * - `too-small`: starts, and the pool cannot hold what is asked of it.
 */
export type PlanVerdict = 'fits' | 'refuses-to-start' | 'dies-under-load' | 'too-small';

export interface Interval {
  readonly low: number;
  readonly high: number;
}

export interface Prediction {
  /** Tokens of one pool: what the engine prints. With DP attention each group has one; see `serverTokens`. */
  readonly poolTokens: number;
  /** Where the pool can lie, given how the facts are rounded or how far the guesses may be off. */
  readonly poolTokensRange: Interval;
  /** Tokens of the whole server: pools × groups, × dcp. */
  readonly serverTokens: number;
  readonly bytesPerToken: number;
  /** `61 layers × (512 + 64) × 2 B, whole on every rank`. */
  readonly bytesPerTokenBecause: string;
  readonly weightsGiBPerGpu: number;
  readonly freeBeforeLoadGiB: number;
  readonly poolGiB: number;
  /** Fixed-size states of hybrid models; 0 for others. */
  readonly statePoolGiB: number;
  readonly graphsGiB: number;
  readonly requestTableGiB: number;
  readonly freeAfterGraphsGiB: number;
  /** What one full prefill chunk takes of it: from the least to the most that is likely. */
  readonly prefillNeedGiB: Interval;
  /** As the engine will cap it, per pool. */
  readonly maxRunningRequests: number;
  /** Hierarchical cache: host memory of one rank and of all, and the tokens it holds; zeros without one. */
  readonly hostCache: { readonly GiBPerRank: number; readonly GiBTotal: number; readonly tokens: number };
  readonly verdict: PlanVerdict;
  /** Why, with the numbers. */
  readonly because: string;
  /** What is close to the edge, assumed, or rewritten by the engine. */
  readonly cautions: readonly string[];
  readonly sources: readonly string[];
  /** Half the range of `poolTokens`, in percent of it. */
  readonly errorPercent: number;
  readonly notModelled: readonly string[];
}
