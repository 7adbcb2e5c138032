/** One launch, looked at from every side: what it holds, whether it lives, what policy says, how fast it is. Pure. */
import { resolveLaunch } from '../../capacity/resolve-launch.ts';
import type { EngineLaunch, PlannedEngine } from '../../capacity/engine-launch.ts';
import type { Gpu } from '../../capacity/gpu.ts';
import type { ModelShape } from '../../capacity/model-shape.ts';
import type { Observation } from '../../capacity/plan-input.ts';
import { predict } from '../../capacity/predict.ts';
import type { Prediction } from '../../capacity/prediction.ts';
import { FLAG_TABLES } from '../../engine/flag-tables.ts';
import { parseFlagWords } from '../../engine/launch-flags.ts';
import { checkPolicy, type PolicyCheck } from '../../spec/policy.ts';
import type { PolicyRule } from '../../spec/run.ts';
import type { StepCoefficients } from '../../twin/calibrate.ts';
import type { TwinRequest } from '../../twin/load.ts';
import { findSteady, type Steady, stepTimeFor, twinServerOf } from './throughput.ts';

/** What stays the same while flags change. */
export interface PlanBasis {
  readonly engine: PlannedEngine;
  /** '' = not said. */
  readonly version: string;
  readonly shape: ModelShape;
  readonly gpu: Gpu;
  /** Each with the launch that it was measured at; without one it speaks of the first launch that is looked at. */
  readonly observations: readonly Observation[];
  readonly policy: readonly PolicyRule[];
  readonly load: PlannedLoad;
  /** From a log; undefined = published fits. */
  readonly measured: StepCoefficients | undefined;
}

export interface PlannedLoad {
  readonly requests: readonly TwinRequest[];
  readonly inFlight: number;
  /** Prompt and longest answer together, tokens: what the pool must hold at least. */
  readonly longestRequestTokens: number;
}

export interface Candidate {
  /** Engine flags, as words of a command line. */
  readonly words: readonly string[];
  readonly launch: EngineLaunch;
  readonly prediction: Prediction;
  readonly policy: readonly PolicyCheck[];
  /** Undefined where the GPU's speed is not known, or the launch does not live. */
  readonly steady: Steady | undefined;
}

export function evaluate(basis: PlanBasis, words: readonly string[]): Candidate {
  const { engine, version, shape, gpu, observations, load } = basis;
  const flags = parseFlagWords(words, FLAG_TABLES[engine]);
  const launch = resolveLaunch({ engine, version, flags, shape, gpu });
  const prediction = predict({ shape, gpu, launch, observations, longestRequestTokens: load.longestRequestTokens });
  const stepTime = stepTimeFor(shape, gpu, launch, basis.measured);
  const lives = prediction.verdict === 'fits' || prediction.verdict === 'too-small';
  const steady =
    stepTime === undefined || !lives || prediction.poolTokens === 0
      ? undefined
      : findSteady(twinServerOf(launch, prediction, stepTime), load.requests, load.inFlight);
  const policy = checkPolicy(basis.policy, { kvCacheDtype: launch.kvType.type });
  return { words, launch, prediction, policy, steady };
}

export function isForbidden({ policy }: Candidate): boolean {
  return policy.some(({ kept }) => !kept);
}
