/**
 * The story's server as the twin sees it: Kimi-K2.5 INT4 on 8 × RTX PRO 6000 under SGLang, and what was seen of its launches.
 * Pools, counts and rates are the story's own; prompt lengths and the spread of the answers are not in it and are assumed.
 */
import { calibrate, PCIE_PREFILL, PUBLISHED_PCIE, type StepShape } from '../../src/twin/calibrate.ts';
import { explainGain, type LaunchPoint } from '../../src/twin/explain-gain.ts';
import { type FittedLengths, fitMeanOutput } from '../../src/twin/fit-lengths.ts';
import { type DrawnLoad, sigmaOfCv } from '../../src/twin/lengths.ts';
import { seededRandom } from '../../src/twin/seeded-random.ts';
import { graphBatchSizes, SGLANG_RULES, type TwinServer } from '../../src/twin/server.ts';
import type { StepTime } from '../../src/twin/step-time.ts';

/** 61 layers × (512 + 64) × 2 bytes. */
export const BF16_BYTES = 70_272;
export const FP8_BYTES = 35_136;
export const IN_FLIGHT = 150;

/** Per GPU: 570.8 GB of routed experts and 23.5 GB of the rest over 8; 1.79 TB/s is the card's peak. */
export const STORY_SHAPE: StepShape = {
  denseBytes: 23.5e9 / 8,
  expertBytes: 570.8e9 / 8,
  expertShare: 8 / 384,
  bytesPerSecond: 1.79e12,
  kvBytesPerToken: BF16_BYTES,
};

const GRAPHS = graphBatchSizes('sglang', 512);

/** 0.85 and 0.88 with bf16, middle of the ranges told; the pools were full, so a little less than the pool is their context. */
export const BF16_SAMPLES = [
  { running: 42.5, tokensPerSecond: 725, contextTokens: 0.9 * 116_000 },
  { running: 34.5, tokensPerSecond: 600, contextTokens: 0.9 * 159_277 },
] as const;

/** From the bf16 launches alone: the fp8 point is to be predicted, so it may not have a say. */
export const storyStepTime = (): StepTime =>
  calibrate({
    ...{ samples: BF16_SAMPLES, shape: STORY_SHAPE, graphBatchSizes: GRAPHS },
    ...{ prefill: PCIE_PREFILL, believed: PUBLISHED_PCIE },
  }).stepTime;

export const storyServer = (poolTokens: number, stepTime: StepTime): TwinServer => ({
  ...{ poolTokens, maxRunningRequests: 2048, pageTokens: 1, prefixCache: true, hostTier: undefined },
  ...{ graphBatchSizes: GRAPHS, rules: SGLANG_RULES, stepTime },
});

export const BF16_POINT: LaunchPoint = {
  ...{ name: '0.88 bf16', poolTokens: 159_277, bytesPerToken: BF16_BYTES },
  ...{ running: 34.5, queued: 115.5, inFlight: IN_FLIGHT, tokensPerSecond: 600 },
};

export const FP8_POINT: LaunchPoint = {
  ...{ name: '0.90 fp8', poolTokens: 376_029, bytesPerToken: FP8_BYTES },
  ...{ running: 142, queued: 0, inFlight: IN_FLIGHT, tokensPerSecond: 1375 },
};

export const storyGain = () => explainGain(BF16_POINT, FP8_POINT);

/** Assumed: prompts of 700 tokens with a long tail, and answers capped at 16,384. */
export const STORY_LOAD: Omit<DrawnLoad, 'output'> = {
  ...{ count: 3000, prompt: { kind: 'lognormal', mean: 700, sigma: sigmaOfCv(1), most: 8000 } },
  ...{ maxNewTokens: 16_384, commonPrefixTokens: 0 },
};

export const fitStory = (stepTime: StepTime, cv: number): FittedLengths =>
  fitMeanOutput({
    ...{ server: storyServer(BF16_POINT.poolTokens, stepTime), inFlight: IN_FLIGHT, running: BF16_POINT.running },
    ...{ load: STORY_LOAD, sigma: sigmaOfCv(cv), randomOf: () => seededRandom(7) },
  });
