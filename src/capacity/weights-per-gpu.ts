/** How many bytes of the weights lie on the fullest GPU. Pure. */
import { isAtLeast } from '../engine/version.ts';
import type { EngineLaunch } from './engine-launch.ts';
import type { ModelShape, WeightPart } from './model-shape.ts';

export function countWeightBytes(shape: ModelShape, launch: EngineLaunch): number {
  const perLayer = shape.weights
    .filter((part) => part.isPerLayer)
    .reduce((sum, part) => sum + part.bytes * shareOf(part, launch), 0);
  const ends = shape.weights.filter((part) => !part.isPerLayer).map((part) => part.bytes * shareOf(part, launch));
  // From 0.5.14 SGLang loads the draft before it sizes the pool; before, the draft lies outside the budget.
  const isDraftInside = launch.engine === 'vllm' || (isAtLeast(launch.version, [0, 5, 14]) ?? true);
  const draft = isDraftInside && launch.speculative?.isSeparate === false ? launch.speculative.draftLayers / shape.layers : 0;
  // Stages split the layers; the embedding lies on the first and the head on the last.
  const stage = Math.ceil(shape.layers / launch.pp) / shape.layers;
  return perLayer * (stage + draft) + (launch.pp === 1 ? ends.reduce((sum, bytes) => sum + bytes, 0) : Math.max(0, ...ends));
}

/** Which share of a part lies on the fullest rank, 0 to 1. */
export function shareOf(part: WeightPart, launch: EngineLaunch): number {
  switch (part.split) {
    case 'whole':
      return 1;
    case 'attention':
      return 1 / launch.attentionTp;
    case 'kv': // at least one head on each rank
      return Math.max(1, part.kvHeads / launch.attentionTp) / part.kvHeads;
    case 'experts':
      return 1 / launch.expertRanks;
    case 'tensor':
      return 1 / launch.tp;
  }
}

/** `--quantization fp8` on a plain checkpoint: the linear layers become eight bits as they are loaded. */
export function quantiseOnline(shape: ModelShape, method: string): ModelShape {
  if (shape.quantisation.method !== '' || !/^(fp8|w8a8_fp8|w8a8_int8)$/.test(method)) return shape;
  const weights = shape.weights.map((part) =>
    part.isPerLayer && part.split !== 'whole' ? { ...part, bytes: Math.min(part.bytes, part.parameters) } : part,
  );
  return { ...shape, weights, quantisation: { ...shape.quantisation, method, weightBits: 8 } };
}
