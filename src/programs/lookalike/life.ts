/**
 * What the serving side of the lookalike knows about the engine that it speaks for: a launch with its arithmetic, a clock, a log, and
 * whether it lives. The launching side makes one (`--as sglang@0.5.8`); the serving side must not know how it came. Pure types.
 */
import type { EngineLaunch, PlannedEngine } from '../../capacity/engine-launch.ts';
import type { Gpu } from '../../capacity/gpu.ts';
import type { ModelShape } from '../../capacity/model-shape.ts';
import type { Prediction } from '../../capacity/prediction.ts';
import type { LookalikeClock } from './clock.ts';

export interface EngineLife {
  readonly engine: PlannedEngine;
  /** As chosen: `0.5.8`. */
  readonly version: string;
  readonly launch: EngineLaunch;
  /** By the scenario's true facts: its pool and its free memory are what this engine has. */
  readonly prediction: Prediction;
  readonly shape: ModelShape;
  readonly gpu: Gpu;
  readonly clock: LookalikeClock;
  /** The time that its log says now. */
  wall(): Date;
  /** One line of the log; the envelope of the version with time and rank is added. Left out: the main process. */
  log(line: string, rank?: number): void;
  /** A phase of a start as diagnosis names it, then `serving`, `draining`. */
  phase(): string;
  /** Its own warm-up has ended and nobody has told it to end. */
  isReady(): boolean;
  /** Asked before each prefill batch: whether its activations fit into what was left after graph capture. */
  canPrefill(newTokens: number): boolean;
  /** Prints the death of a real engine in that batch and dies as it does. */
  dieOutOfMemory(newTokens: number): never;
}
