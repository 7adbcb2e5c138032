/** One launch, looked at from every side: what it holds, whether it lives, what policy says, how fast it is. Pure. */
import type { EngineLaunch, PlannedEngine } from '../../capacity/engine-launch.ts';
import type { Gpu } from '../../capacity/gpu.ts';
import type { ModelShape } from '../../capacity/model-shape.ts';
import { type MeasuredLaunch, planLaunch } from '../../capacity/plan-launch.ts';
import type { Prediction } from '../../capacity/prediction.ts';
import { checkPolicy, type LaunchClass, type PolicyCheck } from '../../spec/policy.ts';
import type { PolicyRule } from '../../spec/run.ts';
import type { StepCoefficients } from '../../twin/calibrate.ts';
import type { TwinRequest } from '../../twin/load.ts';
import { stepTimeFor, twinServerOf } from '../../twin/server-of-launch.ts';
import { findSteady, type Steady } from './throughput.ts';

/** What stays the same while flags change. */
export interface PlanBasis {
  readonly engine: PlannedEngine;
  /** '' = not said. */
  readonly version: string;
  readonly shape: ModelShape;
  readonly gpu: Gpu;
  /** Each with the flags that it was measured at; without any it speaks of the launch that is looked at. */
  readonly observations: readonly MeasuredLaunch[];
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
  const { engine, version, gpu, observations, load } = basis;
  const { longestRequestTokens } = load;
  const { launch, shape, prediction } = planLaunch({
    engine,
    version,
    shape: basis.shape,
    gpu,
    flags: words,
    observations,
    longestRequestTokens,
  });
  const stepTime = stepTimeFor(shape, gpu, launch, basis.measured);
  const lives = prediction.verdict === 'fits' || prediction.verdict === 'too-small';
  const steady =
    stepTime === undefined || !lives || prediction.poolTokens === 0
      ? undefined
      : findSteady(twinServerOf(launch, prediction, stepTime), load.requests, load.inFlight);
  const policy = checkPolicy(basis.policy, {
    kvCacheDtype: launch.kvType.type,
    weightBits: shape.quantisation.weightBits,
    areWeightsAsPublished: shape.quantisation.method === basis.shape.quantisation.method,
    figures: figuresOf(launch, prediction),
  });
  return { words, launch, prediction, policy, steady };
}

function figuresOf(launch: EngineLaunch, prediction: Prediction): NonNullable<LaunchClass['figures']> {
  return {
    contextTokens: launch.contextTokens,
    poolTokens: prediction.poolTokens,
    runningRequests: prediction.maxRunningRequests,
    memoryFraction: launch.memoryFraction,
    freeGiB: prediction.freeAfterGraphsGiB,
  };
}

export function isForbidden({ policy }: Candidate): boolean {
  return policy.some(({ kept }) => !kept);
}
