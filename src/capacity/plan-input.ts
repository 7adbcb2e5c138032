/** What a prediction is made from. Pure types. */
import type { EngineLaunch } from './engine-launch.ts';
import type { Facts } from './facts.ts';
import type { Gpu } from './gpu.ts';
import type { ModelShape } from './model-shape.ts';

/** What one real launch of this model on this kind of GPU printed. */
export interface Observation {
  readonly facts: Facts;
  /** The launch that printed them; left out: the one that is asked about. */
  readonly launch?: EngineLaunch;
  /** For `sources`: `server.log`, `given with --facts`. */
  readonly source: string;
}

export interface PlanInput {
  readonly shape: ModelShape;
  readonly gpu: Gpu;
  readonly launch: EngineLaunch;
  readonly observations: readonly Observation[];
  /** Tokens of the longest request (prompt and answer) that the pool must hold; left out: one prefill chunk. */
  readonly longestRequestTokens?: number;
}
