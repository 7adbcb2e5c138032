/**
 * A launch with every flag resolved as the engine of that version would resolve it: what `predict` and the twin read.
 * Made by `resolve-launch.ts` from flags as people write them. Pure types.
 */
import type { ResolvedKvType } from './kv-type.ts';

export type PlannedEngine = 'sglang' | 'vllm';

export interface EngineLaunch {
  readonly engine: PlannedEngine;
  /** `0.5.8`; where nobody said it, `isVersionAssumed`. */
  readonly version: string;
  readonly isVersionAssumed: boolean;
  readonly tp: number;
  /** Data-parallel ranks. With `isDpAttention` they share the tp GPUs; else each has tp × pp GPUs of its own. */
  readonly dp: number;
  readonly pp: number;
  readonly ep: number;
  /** Decode context parallelism: positions of one request spread over this many ranks. */
  readonly dcp: number;
  readonly isDpAttention: boolean;
  /** GPUs of one copy of the attention: tp, or tp / dp with DP attention. */
  readonly attentionTp: number;
  /** GPUs that the routed experts are spread over. */
  readonly expertRanks: number;
  /** `--mem-fraction-static` or `--gpu-memory-utilization`; the two are fractions of different things. */
  readonly memoryFraction: number;
  readonly isMemoryFractionGiven: boolean;
  readonly kvType: ResolvedKvType;
  readonly pageTokens: number;
  readonly contextTokens: number;
  /** Most new tokens of one prefill pass; 0 = prompts are not cut. vLLM: `max_num_batched_tokens`. */
  readonly prefillChunkTokens: number;
  readonly maxPrefillTokens: number;
  /** As asked for; 0 = left to the engine. vLLM: `max_num_seqs`. */
  readonly maxRunningAsked: number;
  /** `--max-total-tokens`, or vLLM's `--kv-cache-memory-bytes` as bytes below; 0 = not given. */
  readonly maxTotalTokensAsked: number;
  readonly kvCacheBytesAsked: number;
  /** Decode batch sizes that get a CUDA graph, ascending; empty = no graphs. */
  readonly graphBatches: readonly number[];
  readonly hasPrefillGraphs: boolean;
  readonly hierarchicalCache?: HierarchicalCacheFlags;
  readonly speculative?: SpeculativeFlags;
  readonly hasRadixCache: boolean;
  readonly isMixedChunk: boolean;
  readonly schedulePolicy: string;
  readonly scheduleConservativeness: number;
  /** Bytes of an element of a recurrent state: 4, or 2 where a flag says so. */
  readonly stateElementBytes: number;
  /** `--mamba-full-memory-ratio`, `--swa-full-tokens-ratio`; the engine's defaults where not given. */
  readonly stateRatio: number;
  /** `--max-mamba-cache-size`; 0 = by the ratio. */
  readonly stateSlotsAsked: number;
  readonly slidingRatio: number;
  /** What was taken for granted or rewritten by the engine, one sentence each, for the person who reads the plan. */
  readonly notes: readonly string[];
  /** Why the engine does not take these flags; empty where it does. */
  readonly refusals: readonly string[];
  /** Flags that no formula reads; they are passed through. */
  readonly unread: readonly string[];
}

export interface SpeculativeFlags {
  readonly algorithm: string;
  /** Layers whose KV lies beside the target's. */
  readonly draftLayers: number;
  /** Tokens that one step drafts. */
  readonly tokens: number;
  /** The draft is a model of its own, not layers of the checkpoint. */
  readonly isSeparate: boolean;
}

export interface HierarchicalCacheFlags {
  /** Host tokens over device tokens; used where `sizeGB` is 0. */
  readonly ratio: number;
  /** Decimal GB for each rank; 0 = by ratio. */
  readonly sizeGB: number;
  readonly writePolicy: string;
}
