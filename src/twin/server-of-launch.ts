/**
 * What the twin needs of a launch, made from a prediction: pool, limits, rules and step time. Pure. Step times come from published
 * fits, or from the points of a log where one was given.
 */
import type { EngineLaunch } from '../capacity/engine-launch.ts';
import type { Gpu } from '../capacity/gpu.ts';
import type { ModelShape } from '../capacity/model-shape.ts';
import type { Prediction } from '../capacity/prediction.ts';
import { countStepReads, estimatePromptCost } from '../capacity/step-reads.ts';
import {
  type Believed,
  type Calibration,
  calibrate,
  PUBLISHED,
  PUBLISHED_PCIE,
  type StepCoefficients,
  type StepSample,
  stepTimeOf,
} from './calibrate.ts';
import { newTokenRatioOf, type TwinServer } from './server.ts';
import type { StepTime } from './step-time.ts';

/** Layers of the models that the published fixed cost was fitted on; it is launches and all-reduces of layers. */
const FITTED_LAYERS = 61;

/** Undefined where the GPU's speed is not known: a plan then says what fits, and not how fast it is. */
export function stepTimeFor(
  shape: ModelShape,
  gpu: Gpu,
  launch: EngineLaunch,
  measured: StepCoefficients | undefined,
): StepTime | undefined {
  const reads = countStepReads(shape, gpu, launch);
  const prefill = estimatePromptCost(shape, gpu, launch);
  if (reads === undefined || prefill === undefined) return undefined;
  return stepTimeOf(measured ?? believedOf(shape, gpu, launch).mean, reads, prefill);
}

/** Points of a log → coefficients, which hold for other launches of this model on these GPUs too. */
export function calibrateFrom(
  samples: readonly StepSample[],
  shape: ModelShape,
  gpu: Gpu,
  launch: EngineLaunch,
): Calibration | undefined {
  const reads = countStepReads(shape, gpu, launch);
  const prefill = estimatePromptCost(shape, gpu, launch);
  if (reads === undefined || prefill === undefined || samples.length === 0) return undefined;
  const { graphBatches } = launch;
  return calibrate({ samples, shape: reads, graphBatchSizes: graphBatches, prefill, believed: believedOf(shape, gpu, launch) });
}

function believedOf(shape: ModelShape, gpu: Gpu, launch: EngineLaunch): Believed {
  const { mean, deviation } = gpu.interconnect.kind === 'pcie' && launch.tp > 1 ? PUBLISHED_PCIE : PUBLISHED;
  // One GPU has no all-reduces, which are about half of a layer's fixed cost.
  const scale = (shape.layers / FITTED_LAYERS) * (launch.tp === 1 ? 0.5 : 1);
  return { mean: { ...mean, fixedSeconds: mean.fixedSeconds * scale }, deviation };
}

/** With DP attention the groups' pools are taken as one: how requests are dealt out between them is not modelled. */
export function twinServerOf(launch: EngineLaunch, prediction: Prediction, stepTime: StepTime): TwinServer {
  const groups = launch.isDpAttention ? launch.dp : 1;
  const chunk = launch.prefillChunkTokens > 0 ? launch.prefillChunkTokens : Number.POSITIVE_INFINITY;
  return {
    poolTokens: prediction.serverTokens,
    maxRunningRequests: Math.max(1, prediction.maxRunningRequests * groups),
    pageTokens: Math.max(1, launch.pageTokens),
    prefixCache: launch.hasRadixCache,
    hostTier:
      launch.hierarchicalCache === undefined ? undefined : { tokens: prediction.hostCache.tokens, loadBackSecondsPerToken: 0 },
    graphBatchSizes: launch.graphBatches
      .filter((size) => size <= Math.max(1, prediction.maxRunningRequests))
      .map((size) => size * groups),
    stepTime,
    rules:
      launch.engine === 'vllm'
        ? { engine: 'vllm', policy: 'fcfs', maxBatchedTokens: launch.prefillChunkTokens }
        : {
            engine: 'sglang',
            policy: launch.schedulePolicy === 'lpm' ? 'lpm' : 'fcfs',
            chunkedPrefillTokens: chunk * groups,
            maxPrefillTokens: Math.max(launch.maxPrefillTokens, launch.prefillChunkTokens),
            mixedChunk: launch.isMixedChunk,
            newTokenRatio: newTokenRatioOf(launch.scheduleConservativeness),
          },
  };
}
