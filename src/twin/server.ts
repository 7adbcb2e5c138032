/**
 * What the twin needs to know of a server: sizes and scheduling rules, as plain values. `capacity/` computes them from a
 * launch, or a log prints them; the twin itself asks for nothing else. Sources: docs/twin.md.
 */
import type { StepTime } from './step-time.ts';

/** SGLang's admission and retraction. Constants are the same from 0.4.6 to 0.5.18. */
export interface SglangRules {
  readonly engine: 'sglang';
  readonly policy: 'fcfs' | 'lpm';
  /** Most new tokens of one prefill batch. Infinity = chunked prefill is off. */
  readonly chunkedPrefillTokens: number;
  /** `--max-prefill-tokens`: the first request of a batch may exceed it. */
  readonly maxPrefillTokens: number;
  /** `--enable-mixed-chunk`: running requests decode in the same step as a chunk. */
  readonly mixedChunk: boolean;
  readonly newTokenRatio: NewTokenRatio;
}

export interface NewTokenRatio {
  readonly initial: number;
  readonly floor: number;
  /** Taken off after each decode step. */
  readonly decayPerStep: number;
}

/** vLLM V1: one token budget per step, decodes first, chunked prefill in the same step; no reserve for what will be generated. */
export interface VllmRules {
  readonly engine: 'vllm';
  readonly policy: 'fcfs';
  readonly maxBatchedTokens: number;
}

/** The host tier of SGLang's hierarchical cache under write_through. It holds prefixes and never a running request. */
export interface HostTier {
  readonly tokens: number;
  /** Copying back overlaps with the prefill; 0 = it is never the longer of the two. */
  readonly loadBackSecondsPerToken: number;
}

export interface TwinServer {
  readonly poolTokens: number;
  readonly maxRunningRequests: number;
  readonly pageTokens: number;
  /** false = `--disable-radix-cache` or `--no-enable-prefix-caching`: nothing outlives its request. */
  readonly prefixCache: boolean;
  readonly hostTier: HostTier | undefined;
  /** Batch sizes with a captured graph, ascending; empty = every step is eager. */
  readonly graphBatchSizes: readonly number[];
  readonly rules: SglangRules | VllmRules;
  readonly stepTime: StepTime;
}

/** SGLang looks at most this far ahead when it reserves for a running request (SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION). */
export const RESERVE_CLIP_TOKENS = 4096;
/** Steps that SGLang wants room for after a retraction (SGLANG_RETRACT_DECODE_STEPS). */
export const RETRACT_STEPS = 20;
/** A host hit below this is not worth loading back. */
export const LEAST_HOST_HIT_TOKENS = 10;
/** lpm sorts no queue longer than this: matching each request costs too much. */
export const LPM_QUEUE_LIMIT = 128;
/** In-batch prefix caching of lpm: whoever shares so much with a request ahead, and has no more in the tree, waits a round. */
export const IN_BATCH_SHARED_TOKENS = 32;

/** 0.7 × conservativeness, at most 1; a floor of 0.14 of that, reached after 600 decode steps. */
export function newTokenRatioOf(conservativeness = 1): NewTokenRatio {
  const initial = Math.min(0.7 * conservativeness, 1);
  const floor = 0.14 * initial;
  return { initial, floor, decayPerStep: (initial - floor) / 600 };
}

/** SGLang's own defaults for a card between 60 and 160 GB. */
export const SGLANG_RULES: SglangRules = {
  engine: 'sglang',
  policy: 'fcfs',
  chunkedPrefillTokens: 8192,
  maxPrefillTokens: 16_384,
  mixedChunk: false,
  newTokenRatio: newTokenRatioOf(),
};

export const VLLM_RULES: VllmRules = { engine: 'vllm', policy: 'fcfs', maxBatchedTokens: 8192 };

/** Captured decode batch sizes without speculation: SGLang 0.5.x (52 sizes at 512), vLLM V1. */
export function graphBatchSizes(engine: 'sglang' | 'vllm', ceiling: number, maxRunning = Number.POSITIVE_INFINITY): number[] {
  const sizes = engine === 'sglang' ? [1, 2, 4, 8, 12] : [1, 2, 4, 8];
  const last = Math.min(ceiling, maxRunning);
  for (let size = 16; size <= last; ) {
    sizes.push(size);
    if (size < 256) size += 8;
    else if (size < 512 || engine === 'vllm') size += 16;
    else size += 32;
  }
  return sizes.filter((size) => size <= last);
}

/** What makes a server impossible to play, in words; empty = nothing. */
export function problemsOf(server: TwinServer): string[] {
  const problems: string[] = [];
  const whole = (name: string, value: number, least: number) => {
    if (!(Number.isInteger(value) && value >= least))
      problems.push(`${name} is ${value}: a whole number from ${least} on is needed`);
  };
  whole('pageTokens', server.pageTokens, 1);
  whole('maxRunningRequests', server.maxRunningRequests, 1);
  whole('poolTokens', server.poolTokens, 2 * server.pageTokens);
  if (server.graphBatchSizes.some((size, at, all) => size <= (all[at - 1] ?? 0))) problems.push('graphBatchSizes do not ascend');
  if (server.hostTier !== undefined && !server.prefixCache) problems.push('a host tier needs the prefix cache');
  const { rules } = server;
  if (rules.engine === 'vllm') whole('maxBatchedTokens', rules.maxBatchedTokens, server.maxRunningRequests);
  else if (rules.chunkedPrefillTokens !== Number.POSITIVE_INFINITY)
    whole('chunkedPrefillTokens', rules.chunkedPrefillTokens, server.pageTokens);
  return problems;
}
