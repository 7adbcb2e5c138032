/** vLLM 0.6 to 0.21 and later: flags → launch. See `resolve-launch.ts`. */
import { isAtLeast } from '../engine/version.ts';
import type { EngineLaunch, SpeculativeFlags } from './engine-launch.ts';
import { type FlagReader, type LaunchQuestion, readFlags } from './launch-question.ts';
import { resolveKvType } from './resolve-kv-type.ts';

type Resolved = Omit<EngineLaunch, 'isVersionAssumed'>;

/** `--gpu-memory-utilization` where it is not given. */
const DEFAULT_UTILIZATION = 0.9;
/** Cards from here on get larger batches by default (H100 and up). */
const LARGE_CARD_MIB = 70 * 1024;

export function resolveVllmLaunch({ version, flags, shape, gpu }: LaunchQuestion): Resolved {
  const read = readFlags(flags.values);
  const tp = Math.max(1, read.count('tensor-parallel-size', 1));
  const dp = Math.max(1, read.count('data-parallel-size', 1));
  const pp = Math.max(1, read.count('pipeline-parallel-size', 1));
  const dcp = Math.max(1, read.count('decode-context-parallel-size', 1));
  const isV1 = isAtLeast(version, [0, 8, 0]) ?? true;
  const isLarge = gpu.memoryMiB >= LARGE_CARD_MIB;
  const contextTokens = read.count('max-model-len', shape.contextTokens);
  const maxRunning = read.count('max-num-seqs', isV1 && isLarge ? 1024 : 256);
  const batch = resolveBatch(read, { isV1, isLarge, contextTokens });
  const kvType = resolveKvType({
    engine: 'vllm',
    version,
    asked: read.text('kv-cache-dtype'),
    computeTypeAsked: read.text('dtype'),
    shape,
    computeCapability: gpu.computeCapability,
    attentionBackend: read.text('attention-backend'),
    dcp,
  });
  const speculative = readSpeculative(read.text('speculative-config'));
  const utilization = read.count('gpu-memory-utilization', DEFAULT_UTILIZATION);
  const notes = kvType.isOverridden || kvType.asked === 'auto' ? [`the KV cache is ${kvType.type}: ${kvType.because}`] : [];
  const refusals = [...flags.problems, ...(kvType.refusal === '' ? [] : [kvType.refusal])];
  if (utilization <= 0 || utilization > 1) refusals.push(`--gpu-memory-utilization is ${utilization}; it lies between 0 and 1`);
  if (shape.attentionHeads % tp !== 0) refusals.push(`${shape.attentionHeads} attention heads do not divide by ${tp} ranks`);
  return {
    engine: 'vllm',
    version,
    tp,
    dp,
    pp,
    ep: read.isOn('enable-expert-parallel') ? tp * dp : 1,
    dcp,
    isDpAttention: false,
    attentionTp: tp,
    expertRanks: read.isOn('enable-expert-parallel') ? tp * dp : tp,
    memoryFraction: utilization,
    isMemoryFractionGiven: read.isGiven('gpu-memory-utilization'),
    kvType,
    pageTokens: Math.max(1, read.count('block-size', 16)),
    contextTokens,
    prefillChunkTokens: batch,
    maxPrefillTokens: batch,
    maxRunningAsked: maxRunning,
    maxTotalTokensAsked: read.count('num-gpu-blocks-override', 0) * Math.max(1, read.count('block-size', 16)),
    kvCacheBytesAsked: read.count('kv-cache-memory-bytes', 0),
    graphBatches: resolveGraphs(read, maxRunning),
    hasPrefillGraphs: false,
    ...(speculative === undefined ? {} : { speculative }),
    hasRadixCache: read.isGiven('enable-prefix-caching') ? read.isOn('enable-prefix-caching') : isV1,
    isMixedChunk: true,
    schedulePolicy: 'fcfs',
    scheduleConservativeness: 1,
    stateElementBytes: /^(bf|bfloat|float|fp)16$/.test(read.text('mamba-ssm-cache-dtype')) ? 2 : 4,
    stateRatio: 0,
    stateSlotsAsked: 0,
    slidingRatio: 1,
    notes,
    refusals,
    unread: flags.unread,
  };
}

/** Tokens of one step. V0 without chunked prefill takes a whole prompt of the longest length at once. */
function resolveBatch(
  read: FlagReader,
  { isV1, isLarge, contextTokens }: { isV1: boolean; isLarge: boolean; contextTokens: number },
): number {
  const isChunked = isV1 || read.isOn('enable-chunked-prefill') || contextTokens > 32_768; // V0 turns it on beyond 32K
  const otherwise = isV1 ? (isLarge ? 8192 : 2048) : isChunked ? 2048 : Math.max(contextTokens, 2048);
  return read.count('max-num-batched-tokens', otherwise);
}

/** 1, 2, 4, then by 8 to 256, then by 16 to twice the running requests, 512 at most. */
function resolveGraphs(read: FlagReader, maxRunning: number): number[] {
  if (read.isOn('enforce-eager')) return [];
  const listed = [...read.list('cuda-graph-sizes')].sort((a, b) => a - b);
  if (listed.length > 1) return listed;
  const asked = read.count('max-cudagraph-capture-size', listed[0] ?? Math.min(2 * maxRunning, 512));
  const most = Math.min(asked, 2 ** 16); // more than any engine captures
  const sizes = [1, 2, 4];
  for (let size = 8; size <= most; size += size < 256 ? 8 : 16) sizes.push(size);
  return sizes.filter((size) => size <= most);
}

function readSpeculative(text: string): SpeculativeFlags | undefined {
  if (text === '') return undefined;
  const algorithm = /"method"\s*:\s*"([\w.-]{1,40})"/.exec(text)?.[1] ?? 'draft model';
  const tokens = Number(/"num_speculative_tokens"\s*:\s*(\d{1,3})/.exec(text)?.[1] ?? 1);
  return { algorithm, draftLayers: 1, tokens, isSeparate: /"model"\s*:/.test(text) };
}
