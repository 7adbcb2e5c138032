/**
 * KV bytes of one token on one GPU, and the fixed state of one request, by engine and version. Pure.
 * Sources: field notes on SGLang 0.4.6 to 0.5.18 (`get_cell_size_per_token`, `pool_configurator`) and on vLLM's KV cache specs.
 */
import { isAtLeast } from '../engine/version.ts';
import type { EngineLaunch } from './engine-launch.ts';
import type { CacheGroup, CompressedCache, HeadCache, LatentCache, ModelShape, StateCache } from './model-shape.ts';

export interface TokenBytes {
  /** Per token of the pool that the engine prints. */
  readonly bytes: number;
  readonly because: string;
  /** Fixed state of one request; 0 where no layer has one. */
  readonly stateBytesPerRequest: number;
  /** Attention layers that store every token. */
  readonly layers: number;
}

export function countTokenBytes(shape: ModelShape, launch: EngineLaunch): TokenBytes {
  const parts: string[] = [];
  let bytes = 0;
  let stateBytes = 0;
  let layers = 0;
  for (const whole of shape.caches) {
    const group = { ...whole, layers: Math.ceil(whole.layers / launch.pp) };
    if (group.kind === 'state') {
      stateBytes += countStateBytes(group, launch);
      continue;
    }
    const share = slidingShare(shape, group, launch);
    if (share === 0) continue;
    const one = bytesOf(group, launch);
    bytes += group.layers * one.bytes * share;
    layers += group.layers;
    const times = share === 1 ? '' : ` × ${share} (sliding window)`;
    parts.push(`${group.layers} layers × ${one.because}${times}`);
  }
  const draft = draftShare(shape, launch, layers);
  if (draft > 0) parts.push(`${(draft * 100).toFixed(1)} % more for the draft`);
  return { bytes: bytes * (1 + draft), because: parts.join(' + '), stateBytesPerRequest: stateBytes, layers };
}

function bytesOf(group: Exclude<CacheGroup, StateCache>, launch: EngineLaunch): { bytes: number; because: string } {
  switch (group.kind) {
    case 'latent':
      return latentBytes(group, launch);
    case 'compressed':
      return compressedBytes(group, launch);
    case 'heads':
      return headBytes(group, launch);
  }
}

/**
 * DeepSeek-V4 (`DSV4PoolConfigurator`): FP8 latents with 16-bit rope parts for each 4th or 128th token, whole ones inside the window, and
 * 32-bit states of what is being compressed, in rings of 8 and 128 for each window (twice that with a draft). The mean over its layers.
 */
function compressedBytes(group: CompressedCache, launch: EngineLaunch): { bytes: number; because: string } {
  const { layers, layersOf4, layersOf128, nope, rope, indexerDim, window } = group;
  const latent = nope + rope * 2 + 8;
  const indexer = indexerDim + (indexerDim / 128) * 4;
  const rings = launch.speculative === undefined ? 1 : 2;
  const states = (ratio: number, words: number, tokens: number) => ((ratio * rings) / window) * words * tokens * 4;
  const ratio = launch.slidingRatio;
  const inWindow =
    layers * latent +
    layersOf4 * (states(8, 4, nope + rope) + states(8, 4, indexerDim)) +
    layersOf128 * states(128, 2, nope + rope);
  const kept = layersOf4 * (latent / 4 + indexer / 4) + (layersOf128 * latent) / 128;
  return {
    bytes: (kept + ratio * inWindow) / layers,
    because: `the mean of ${layersOf4} layers with one latent of ${latent} B for 4 tokens, ${layersOf128} with one for 128, and a window for ${ratio} of the tokens`,
  };
}

function elementBytes({ kvType }: EngineLaunch): number {
  return kvType.bits / 8 + kvType.scaleBytesPerElement;
}

/** Fewer KV heads than ranks: each rank keeps one, as a copy. */
function headBytes(group: HeadCache, launch: EngineLaunch): { bytes: number; because: string } {
  const heads = Math.max(1, Math.floor(group.kvHeads / launch.attentionTp));
  const element = elementBytes(launch);
  const copies = group.kvHeads < launch.attentionTp ? `, ${group.kvHeads} KV heads copied over ${launch.attentionTp} ranks` : '';
  const bytes = heads * (group.keyDim + group.valueDim) * element;
  return {
    bytes,
    because: `${heads} KV head${heads === 1 ? '' : 's'} × (${group.keyDim} + ${group.valueDim}) × ${element} B${copies}`,
  };
}

function latentBytes(group: LatentCache, launch: EngineLaunch): { bytes: number; because: string } {
  const { rank, rope, indexerDim } = group;
  const element = elementBytes(launch);
  const isSglang = launch.engine === 'sglang';
  // 8-bit keys and a 32-bit scale for each 128 of them.
  const indexer = indexerDim === 0 ? 0 : indexerDim + (indexerDim / 128) * 4;
  const indexerWords = indexer === 0 ? '' : ` + ${indexer} B of the indexer`;
  // Sparse attention in FP8 keeps scales beside the latent and the rope part in 16 bits; SGLang 0.5.8 counted without them.
  const isPacked = indexer > 0 && launch.kvType.bits === 8 && !(isSglang && isAtLeast(launch.version, [0, 5, 9]) === false);
  if (isPacked) {
    const bytes = rank + (rank / 128) * 4 + rope * 2;
    return {
      bytes: bytes + indexer,
      because: `${bytes} B (FP8 latent, scales, 16-bit rope part)${indexerWords}, whole on every rank`,
    };
  }
  return {
    bytes: (rank + rope) * element + indexer,
    because: `(${rank} + ${rope}) × ${element} B${indexerWords}, whole on every rank`,
  };
}

function countStateBytes(group: Extract<CacheGroup, { kind: 'state' }>, launch: EngineLaunch): number {
  const perLayer = group.convElements * 2 + group.recurrentElements * launch.stateElementBytes;
  return (group.layers * perLayer) / launch.attentionTp;
}

/** SGLang keeps a pool of its own for sliding layers only for models it has on a list, which grew from version to version. */
const SLIDING_SINCE: readonly { readonly types: RegExp; readonly since: [number, number, number] }[] = [
  { types: /^(llama4|gpt_oss)/, since: [0, 5, 8] },
  { types: /^mimo_v2/, since: [0, 5, 8] },
  { types: /^step3p5/, since: [0, 5, 9] },
  { types: /^(gemma4|step3p7|laguna)/, since: [0, 5, 12] },
];

/** How much of a full layer's memory a sliding one takes for each token of the pool. */
function slidingShare(shape: ModelShape, group: CacheGroup, launch: EngineLaunch): number {
  if (group.kind !== 'heads' || group.window === 0) return 1; // compressed layers have their share inside
  if (launch.engine === 'vllm') return launch.slidingRatio;
  const listed = SLIDING_SINCE.find(({ types }) => types.test(shape.modelType));
  const isSplit = listed !== undefined && (isAtLeast(launch.version, listed.since) ?? true) && launch.slidingRatio < 1;
  return isSplit ? launch.slidingRatio : 1;
}

/** From 0.5.12 the draft's layers share the pool's bytes; before, the draft had memory outside it. */
function draftShare(shape: ModelShape, launch: EngineLaunch, layers: number): number {
  if (launch.speculative === undefined || layers === 0) return 0;
  if (launch.engine === 'sglang' && !(isAtLeast(launch.version, [0, 5, 12]) ?? true)) return 0;
  return launch.speculative.draftLayers / Math.max(layers, shape.layers / launch.pp);
}
