/** SGLang 0.4.6 to 0.5.18: flags → launch. See `resolve-launch.ts`. */
import { isAtLeast } from '../engine/version.ts';
import type { EngineLaunch, HierarchicalCacheFlags } from './engine-launch.ts';
import type { ResolvedKvType } from './kv-type.ts';
import { type FlagReader, type LaunchQuestion, readFlags } from './resolve-launch.ts';
import { resolveKvType } from './resolve-kv-type.ts';
import { defaultChunk, defaultFraction, defaultGraphMax, listGraphBatches, type SglangQuestion } from './sglang-defaults.ts';

type Resolved = Omit<EngineLaunch, 'isVersionAssumed'>;

export function resolveSglangLaunch({ version, flags, shape, gpu }: LaunchQuestion): Resolved {
  const read = readFlags(flags.values);
  const notes: string[] = [];
  const from = (...least: [number, number, number]) => isAtLeast(version, least) ?? true;
  const isDsa = shape.caches.some((group) => group.kind === 'latent' && group.indexerDim > 0);
  // 0.5.3 and 0.5.4 rewrite the whole launch of a sparse-attention model on Blackwell.
  const isRewritten = isDsa && gpu.computeCapability >= 10 && from(0, 5, 3) && !from(0, 5, 5);
  const tp = Math.max(1, read.count('tp-size', 1));
  const dp = isRewritten ? tp : Math.max(1, read.count('dp-size', 1));
  const pp = Math.max(1, read.count('pp-size', 1));
  const dcp = Math.max(1, read.count('dcp-size', 1));
  const isDpAttention = dp > 1 && (isRewritten || read.isOn('enable-dp-attention'));
  if (isRewritten)
    notes.push(
      `SGLang ${version} turns on DP attention with dp ${tp} and sets the memory fraction to 0.8 for this model and GPU`,
    );
  if (read.isOn('enable-dp-attention') && dp === 1) notes.push('DP attention is off: it needs --dp-size above 1');
  const backend = read.text('attention-backend') || read.text('decode-attention-backend');
  const speculative = read.text('speculative-algorithm').toUpperCase();
  const ask: SglangQuestion = {
    version,
    memoryMiB: gpu.memoryMiB,
    tp,
    pp,
    dp,
    isDpAttention,
    shape,
    isLanguageOnly: read.isOn('language-only'),
    speculative,
  };
  const kvType = resolveKvType({
    engine: 'sglang',
    version,
    asked: read.text('kv-cache-dtype'),
    computeTypeAsked: read.text('dtype'),
    shape,
    computeCapability: gpu.computeCapability,
    attentionBackend: backend,
    dcp,
  });
  const wholeChunk = read.count('chunked-prefill-size', defaultChunk(ask));
  const graphs = resolveGraphs(read, ask);
  const fraction = resolveFraction(read, ask, {
    chunk: wholeChunk,
    graphMax: graphs.batches.at(-1) ?? 0,
    hasPrefillGraphs: graphs.hasPrefill,
  });
  if (fraction.note !== '') notes.push(fraction.note);
  const hierarchicalCache = resolveHierarchicalCache(read, from(0, 5, 2));
  const draftLayers = Math.max(1, shape.draftLayers);
  return {
    engine: 'sglang',
    version,
    tp,
    dp,
    pp,
    ep: read.count('ep-size', 1),
    dcp,
    isDpAttention,
    attentionTp: isDpAttention ? Math.max(1, Math.floor(tp / dp)) : tp,
    expertRanks: tp,
    memoryFraction: isRewritten ? 0.8 : fraction.value,
    isMemoryFractionGiven: read.isGiven('mem-fraction-static') && !isRewritten,
    kvType,
    pageTokens: resolvePage(read, backend, isDsa, shape.modelType),
    contextTokens: read.count('context-length', shape.contextTokens),
    prefillChunkTokens: wholeChunk <= 0 ? 0 : isDpAttention ? Math.floor(wholeChunk / dp) : wholeChunk,
    maxPrefillTokens: read.count('max-prefill-tokens', 16_384),
    maxRunningAsked: read.count('max-running-requests', speculative === '' ? 0 : 48), // 48 where a draft is used
    maxTotalTokensAsked: read.count('max-total-tokens', 0),
    kvCacheBytesAsked: 0,
    graphBatches: graphs.batches,
    hasPrefillGraphs: graphs.hasPrefill,
    ...(hierarchicalCache === undefined ? {} : { hierarchicalCache }),
    ...(speculative === '' ? {} : { speculative: { algorithm: speculative, draftLayers } }),
    hasRadixCache: !read.isOn('disable-radix-cache'),
    isMixedChunk: read.isOn('enable-mixed-chunk') && speculative === '',
    schedulePolicy: read.text('schedule-policy') || 'fcfs',
    scheduleConservativeness: read.count('schedule-conservativeness', 1) * (isDpAttention ? 0.3 : 1),
    stateElementBytes: /^(bf|bfloat|float|fp)16$/.test(read.text('mamba-ssm-dtype')) ? 2 : 4,
    stateRatio: read.count('mamba-full-memory-ratio', 0.9),
    stateSlotsAsked: read.count('max-mamba-cache-size', 0),
    slidingRatio: read.isOn('disable-hybrid-swa-memory') ? 1 : read.count('swa-full-tokens-ratio', 0.8),
    notes: [...notes, ...noteKvType(kvType)],
    refusals: [
      ...flags.problems,
      ...(kvType.refusal === '' ? [] : [kvType.refusal]),
      ...refuse(read, { tp, dp, isDpAttention, shape }),
    ],
    unread: flags.unread,
  };
}

function noteKvType(kvType: ResolvedKvType): string[] {
  return kvType.isOverridden || kvType.asked === 'auto' ? [`the KV cache is ${kvType.type}: ${kvType.because}`] : [];
}

function resolveFraction(
  read: FlagReader,
  ask: SglangQuestion,
  input: { chunk: number; graphMax: number; hasPrefillGraphs: boolean },
): { value: number; note: string } {
  if (read.isGiven('mem-fraction-static')) return { value: read.count('mem-fraction-static', 0), note: '' };
  const { fraction, because } = defaultFraction(ask, input);
  return { value: fraction, note: `--mem-fraction-static is not given: ${because}` };
}

function resolveGraphs(read: FlagReader, ask: SglangQuestion): { batches: readonly number[]; hasPrefill: boolean } {
  const isOff = read.isOn('disable-cuda-graph') || read.text('cuda-graph-backend-decode') === 'disabled';
  const listed = [...read.list('cuda-graph-bs-decode')].sort((a, b) => a - b);
  const most = read.count('cuda-graph-max-bs-decode', defaultGraphMax(ask));
  // Sizes above the most requests there can be are left out.
  const asked = read.count('max-running-requests', Number.POSITIVE_INFINITY);
  const perGroup = ask.isDpAttention ? Math.floor(asked / ask.dp) : asked;
  const batches = isOff ? [] : listed.length > 0 ? listed : listGraphBatches(ask.version, most);
  const isDefault = isAtLeast(ask.version, [0, 5, 10]) ?? true; // opt-in before
  const hasPrefill =
    !read.isOn('disable-cuda-graph') &&
    !read.isOn('disable-piecewise-cuda-graph') &&
    read.text('cuda-graph-backend-prefill') !== 'disabled' &&
    (isDefault || read.isOn('enable-piecewise-cuda-graph'));
  return { batches: batches.filter((size) => size <= perGroup), hasPrefill };
}

function resolveHierarchicalCache(read: FlagReader, isWriteThrough: boolean): HierarchicalCacheFlags | undefined {
  if (!read.isOn('enable-hierarchical-cache')) return undefined;
  return {
    ratio: read.count('hicache-ratio', 2),
    sizeGB: read.count('hicache-size', 0),
    writePolicy: read.text('hicache-write-policy') || (isWriteThrough ? 'write_through' : 'write_through_selective'),
  };
}

/** Some attention kernels work in pages of one size, whatever the flag says. */
function resolvePage(read: FlagReader, backend: string, isDsa: boolean, modelType: string): number {
  const asked = read.count('page-size', 1);
  switch (backend) {
    case 'flashmla':
      return 64;
    case 'cutlass_mla':
      return 128;
    case 'trtllm_mla':
      return asked === 32 ? 32 : 64;
    case 'trtllm_mha':
      return asked === 16 || asked === 32 ? asked : 64;
    case 'fa4':
      return 128;
    default:
      return modelType === 'deepseek_v4' ? 256 : isDsa ? 64 : Math.max(1, asked);
  }
}

function refuse(
  read: FlagReader,
  { tp, dp, isDpAttention, shape }: { tp: number; dp: number; isDpAttention: boolean; shape: { attentionHeads: number } },
): string[] {
  const refusals: string[] = [];
  const fraction = read.count('mem-fraction-static', 0.5);
  if (fraction <= 0 || fraction >= 1) refusals.push(`--mem-fraction-static is ${fraction}; it lies between 0 and 1`);
  if (isDpAttention && tp % dp !== 0)
    refusals.push(`--tp-size ${tp} is not a multiple of --dp-size ${dp}, as DP attention needs`);
  const attentionTp = isDpAttention ? tp / dp : tp;
  if (shape.attentionHeads % attentionTp !== 0)
    refusals.push(`${shape.attentionHeads} attention heads do not divide by ${attentionTp} ranks`);
  if (read.isOn('enable-hierarchical-cache') && read.isOn('disable-radix-cache'))
    refusals.push('--enable-hierarchical-cache and --disable-radix-cache exclude each other');
  return refusals;
}
