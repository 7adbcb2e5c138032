/**
 * What one GPU reads in a decode step, and what a prompt token costs: bytes, seconds and shares from the model, the GPU and the
 * launch alone. Pure. `twin/calibrate.ts` turns it into step times, with published fits or measured points.
 */
import { countTokenBytes } from './bytes-per-token.ts';
import type { EngineLaunch } from './engine-launch.ts';
import type { Gpu } from './gpu.ts';
import type { CacheGroup, ModelShape, WeightPart } from './model-shape.ts';
import { shareOf } from './weights-per-gpu.ts';

export interface StepReads {
  /** Read by every batch. */
  readonly denseBytes: number;
  /** All routed experts; a batch of B reads 1 − (1 − share)^B of them. */
  readonly expertBytes: number;
  /** Experts per token ÷ experts; 0 = none. */
  readonly expertShare: number;
  readonly bytesPerSecond: number;
  /** KV bytes of one token of context that one GPU reads. */
  readonly kvBytesPerToken: number;
}

/** Undefined where the GPU's speed is not known. */
export function countStepReads(shape: ModelShape, gpu: Gpu, launch: EngineLaunch): StepReads | undefined {
  if (gpu.bandwidthGBps === 0) return undefined;
  const read = shape.weights.filter(isReadEachStep);
  const bytesOf = (parts: readonly WeightPart[]) =>
    parts.reduce((sum, part) => sum + part.bytes * shareOf(part, launch), 0) / launch.pp;
  const groups = launch.isDpAttention ? launch.dp : 1;
  return {
    denseBytes: bytesOf(read.filter(({ split }) => split !== 'experts')),
    expertBytes: bytesOf(read.filter(({ split }) => split === 'experts')),
    expertShare: shape.experts === undefined ? 0 : shape.experts.perToken / shape.experts.count,
    bytesPerSecond: gpu.bandwidthGBps * 1e9,
    // A request's KV lies in one group, and there each rank keeps every dcp-th position.
    kvBytesPerToken: countTokenBytes(shape, launch).bytes / (groups * launch.dcp),
  };
}

/** The embedding is looked up and not read; the vision tower sees images alone. */
function isReadEachStep({ name }: WeightPart): boolean {
  return name !== 'embedding' && !/vision/.test(name);
}

export interface PromptCost {
  readonly perTokenSeconds: number;
  /** Times n·(p + n/2) for n new tokens after p that are there already. */
  readonly perTokenPairSeconds: number;
  /** A prefill reads the weights too. */
  readonly leastSeconds: number;
}

/** Share of the tensor peak that prefills reach: 0.036 ms a token of Kimi-K2.5 on 8 × H200 is 0.22, 0.123 on 8 × RTX PRO 6000 is 0.14. */
const PEAK_SHARE = 0.18;

/** Undefined where the GPU's speed is not known. */
export function estimatePromptCost(shape: ModelShape, gpu: Gpu, launch: EngineLaunch): PromptCost | undefined {
  const reads = countStepReads(shape, gpu, launch);
  if (reads === undefined || gpu.bf16Tflops === 0) return undefined;
  const flops = gpu.bf16Tflops * 1e12 * PEAK_SHARE * launch.tp;
  const active = shape.weights
    .filter(isReadEachStep)
    .reduce((sum, { parameters, split }) => sum + parameters * (split === 'experts' ? reads.expertShare : 1), 0);
  const attention = shape.caches.find((group) => group.kind !== 'state');
  const width = attention === undefined ? 0 : widthOf(attention);
  // Scores and the sum over values: two products, each a multiply and an add, for each head, layer and pair of tokens.
  const perPair = 4 * (attention?.layers ?? 0) * shape.attentionHeads * width;
  return {
    perTokenSeconds: (2 * active) / flops,
    perTokenPairSeconds: perPair / flops,
    leastSeconds: (reads.denseBytes + reads.expertBytes) / reads.bytesPerSecond,
  };
}

/** Elements that one head compares for each pair of tokens. */
function widthOf(group: CacheGroup): number {
  if (group.kind === 'heads') return group.keyDim;
  if (group.kind === 'latent') return group.rank + group.rope;
  return group.kind === 'compressed' ? group.nope + group.rope : 0;
}
