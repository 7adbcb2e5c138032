/**
 * Memory that nobody has measured yet: free before the weights, graphs and workspaces, what a prefill chunk needs. Pure.
 * Each figure is an estimate from a few public logs, with the width that those logs leave; a fact replaces it.
 */
import { isAtLeast } from '../engine/version.ts';
import type { EngineLaunch } from './engine-launch.ts';
import type { Measured } from './facts.ts';
import type { Gpu } from './gpu.ts';
import { guessed } from './intervals.ts';
import type { ModelShape } from './model-shape.ts';
import type { Interval } from './prediction.ts';

const GIB = 2 ** 30;

/**
 * GiB between what the driver reports and what CUDA says is the total: RTX PRO 6000 95.59 and 94.97, H100 79.65 and 79.11,
 * H200 140.40 and 139.81, RTX 5090 31.84 and 31.36 (totals of out-of-memory messages).
 */
const DRIVER_GIB = 0.55;
/** CUDA context and kernels of one process: 79.11 − 78.5 (Llama-3.1-8B and Qwen2-0.5B on 80 GB cards, one GPU each). */
const CONTEXT_GIB = 0.55;

export function cudaTotalGiB(gpu: Gpu): number {
  return gpu.memoryMiB / 1024 - DRIVER_GIB;
}

/**
 * Buffers of the process groups. PCIe, 8 ranks: 94.97 − 94.09 − context = 0.35. NVLink: H200 with 4 ranks 0.9, with 8 ranks 1.9; H20 with 8
 * 0.9; GB200 1.7.
 */
export function communicationGiB(gpu: Gpu, launch: EngineLaunch): Measured {
  const ranks = launch.tp * launch.pp * (launch.isDpAttention ? 1 : launch.dp);
  if (ranks === 1) return guessed(0, 0);
  if (gpu.interconnect.kind === 'pcie') return guessed(0.35, 0.25);
  return ranks >= 8 ? guessed(1.4, 0.6) : guessed(0.8, 0.5);
}

export function guessFreeBeforeLoad(gpu: Gpu, launch: EngineLaunch): Measured {
  const groups = communicationGiB(gpu, launch);
  return guessed(cudaTotalGiB(gpu) - CONTEXT_GIB - groups.value, 0.25 + groups.halfWidth);
}

/**
 * MiB of one captured batch size and layer. SGLang: 3.8 GiB over 52 sizes × 61 layers and the parts below (three launches of the same
 * server); a printed 1.93 GiB (43 sizes, 61 layers) and 0.17 GiB (3 × 24) lie within 1 GiB of it. vLLM shares one memory pool between its graphs: 1.24 GiB for
 * 61 layers, 0.49 for 64, 0.64 for 40.
 */
const GRAPH_MIB = { sglang: 0.92, vllm: 0.25 } as const;
/** Attention workspaces, cuBLAS, samplers. */
const WORKSPACE_GIB = 0.5;
/** GiB that prefill graphs take; SGLang's own reserve for them with latent attention. */
const PREFILL_GRAPHS_GIB = 1.5;

export function estimateGraphsGiB(shape: ModelShape, launch: EngineLaunch): number {
  const layers = shape.layers / launch.pp;
  const graphs = (launch.graphBatches.length * layers * GRAPH_MIB[launch.engine]) / 1024;
  if (launch.engine === 'vllm') return graphs; // logits and workspaces lie in its profile
  const most = launch.graphBatches.at(-1) ?? 0;
  const logits = (most * shape.vocabularySize * 6) / GIB; // 32-bit and 16-bit logits of the largest batch
  const prefill = launch.hasPrefillGraphs ? PREFILL_GRAPHS_GIB : 0;
  return graphs + logits + prefill + WORKSPACE_GIB;
}

/** Bytes of activations for one prompt token. Llama-3.1-8B measures 109.8 KB, and this gives 110.6 (two vLLM profiles, 20,000 and 29,000 tokens). */
export function activationBytesPerToken(shape: ModelShape, launch: EngineLaunch): number {
  const { hiddenSize, intermediateSize, experts } = shape;
  const dense = experts !== undefined && experts.layers === shape.layers ? 0 : (3 * intermediateSize) / launch.tp;
  const base = 2 * (3 * hiddenSize + dense);
  if (experts === undefined) return base;
  // Each token is copied for each of its experts, before and after them.
  const routed = experts.perToken * (2 * hiddenSize + (3 * experts.intermediateSize) / launch.expertRanks) * 2;
  const groups = launch.isDpAttention ? launch.dp : 1; // the experts see the tokens of all groups
  return base + routed * groups;
}

/** What the largest prefill takes of the free memory: 1.5 to 2.5 GiB for 8,192 tokens of Kimi-K2.x, in proportion to the chunk. */
export function estimatePrefillNeed(shape: ModelShape, launch: EngineLaunch): Interval {
  const tokens = launch.prefillChunkTokens > 0 ? launch.prefillChunkTokens : launch.maxPrefillTokens;
  const likely = (tokens * activationBytesPerToken(shape, launch)) / GIB;
  return { low: 0.7 * likely, high: 1.15 * likely };
}

/** SGLang's table of slots: running requests × (context + 4) × 4 bytes, outside the static budget. */
export function requestTableGiB(runningRequests: number, contextTokens: number): number {
  return (runningRequests * (contextTokens + 4) * 4) / GIB;
}

/**
 * Copies of the 32-bit logits at the worst moment of top-p sampling. By sorting: the logits and those in 16 bits, the sorted ones, their 64-bit
 * places, and what a sort needs beside its result (Gemma-2-9B on 8 × L4 leaves room for 8.1). Logs of 0.21 and 0.26 leave no room for a sort; the bracket of the change is 0.17 to 0.21.
 */
const SAMPLER_COPIES = { sorting: 8, fused: 2 } as const;

/** vLLM measures the peak of a dummy step and of a sampler run with all sequences; the larger one counts. */
export function estimateVllmPeakGiB(shape: ModelShape, launch: EngineLaunch): number {
  const step = launch.prefillChunkTokens * activationBytesPerToken(shape, launch);
  const copies = SAMPLER_COPIES[(isAtLeast(launch.version, [0, 17, 0]) ?? true) ? 'fused' : 'sorting'];
  const sampler = launch.maxRunningAsked * shape.vocabularySize * 4 * copies;
  return Math.max(step, sampler) / GIB;
}
