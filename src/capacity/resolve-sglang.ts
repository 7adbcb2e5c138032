/** SGLang 0.4.6 to 0.5.18: flags → launch. See `resolve-launch.ts`. */
import { isAtLeast } from '../engine/version.ts';
import type { EngineLaunch, HierarchicalCacheFlags } from './engine-launch.ts';
import type { ResolvedKvType } from './kv-type.ts';
import { type FlagReader, type LaunchQuestion, readFlags } from './launch-question.ts';
import { resolveKvType } from './resolve-kv-type.ts';
import { defaultChunk, defaultFraction, defaultGraphMax, listGraphBatches, type SglangQuestion } from './sglang-defaults.ts';

type Resolved = Omit<EngineLaunch, 'isVersionAssumed'>;

/** `--max-running-requests` where a draft is used and nobody says it. */
const RUNNING_WITH_DRAFT = 48;

export function resolveSglangLaunch(question: LaunchQuestion): Resolved {
  const { version, flags, shape, gpu } = question;
  const read = readFlags(flags.values);
  const ranks = resolveRanks(question, read);
  const speculative = read.text('speculative-algorithm').toUpperCase();
  const backend = read.text('attention-backend') || read.text('decode-attention-backend');
  const ask: SglangQuestion = {
    version,
    memoryMiB: gpu.memoryMiB,
    ...ranks,
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
    dcp: ranks.dcp,
  });
  const chunk = read.count('chunked-prefill-size', defaultChunk(ask));
  const graphs = resolveGraphs(read, ask);
  const fraction = resolveFraction(read, ask, ranks.isRewritten, {
    chunk,
    graphMax: graphs.most,
    hasPrefillGraphs: graphs.hasPrefill,
  });
  const kvRefusals = kvType.refusal === '' ? [] : [kvType.refusal];
  const { isRewritten: _, notes: rankNotes, ...sizes } = ranks;
  return {
    engine: 'sglang',
    version,
    ...sizes,
    expertRanks: ranks.tp,
    memoryFraction: fraction.value,
    isMemoryFractionGiven: fraction.isGiven,
    kvType,
    pageTokens: resolvePage(read, backend, question),
    contextTokens: read.count('context-length', shape.contextTokens),
    prefillChunkTokens: chunk <= 0 ? 0 : ranks.isDpAttention ? Math.floor(chunk / ranks.dp) : chunk,
    maxPrefillTokens: read.count('max-prefill-tokens', 16_384),
    maxRunningAsked: read.count('max-running-requests', speculative === '' ? 0 : RUNNING_WITH_DRAFT),
    maxTotalTokensAsked: read.count('max-total-tokens', 0),
    kvCacheBytesAsked: 0,
    graphBatches: graphs.batches,
    hasPrefillGraphs: graphs.hasPrefill,
    ...resolveExtras(read, question, speculative),
    ...resolveScheduling(read, ranks.isDpAttention, speculative),
    notes: [...rankNotes, ...fraction.notes, ...noteKvType(kvType)],
    refusals: [...flags.problems, ...kvRefusals, ...refuse(read, ranks, shape.attentionHeads)],
    unread: flags.unread,
  };
}

interface Ranks {
  readonly tp: number;
  readonly dp: number;
  readonly pp: number;
  readonly ep: number;
  readonly dcp: number;
  readonly isDpAttention: boolean;
  readonly attentionTp: number;
  /** 0.5.3 and 0.5.4 rewrite the whole launch of a sparse-attention model on Blackwell. */
  readonly isRewritten: boolean;
  readonly notes: readonly string[];
}

function resolveRanks({ version, shape, gpu }: LaunchQuestion, read: FlagReader): Ranks {
  const from = (...least: [number, number, number]) => isAtLeast(version, least) ?? true;
  const isRewritten = hasIndexer(shape.caches) && gpu.computeCapability >= 10 && from(0, 5, 3) && !from(0, 5, 5);
  const tp = Math.max(1, read.count('tp-size', 1));
  const dp = isRewritten ? tp : Math.max(1, read.count('dp-size', 1));
  const isDpAttention = dp > 1 && (isRewritten || read.isOn('enable-dp-attention'));
  const notes: string[] = [];
  if (isRewritten)
    notes.push(
      `SGLang ${version} turns on DP attention with dp ${tp} and sets the memory fraction to 0.8 for this model and GPU`,
    );
  if (read.isOn('enable-dp-attention') && dp === 1) notes.push('DP attention is off: it needs --dp-size above 1');
  return {
    tp,
    dp,
    pp: Math.max(1, read.count('pp-size', 1)),
    ep: Math.max(1, read.count('ep-size', 1)),
    dcp: Math.max(1, read.count('dcp-size', 1)),
    isDpAttention,
    attentionTp: isDpAttention ? Math.max(1, Math.floor(tp / dp)) : tp,
    isRewritten,
    notes,
  };
}

function hasCompression({ caches }: LaunchQuestion['shape']): boolean {
  return caches.some(({ kind }) => kind === 'compressed');
}

function hasIndexer(caches: LaunchQuestion['shape']['caches']): boolean {
  return caches.some((group) => group.kind === 'latent' && group.indexerDim > 0);
}

function noteKvType(kvType: ResolvedKvType): string[] {
  return kvType.isOverridden || kvType.asked === 'auto' ? [`the KV cache is ${kvType.type}: ${kvType.because}`] : [];
}

function resolveFraction(
  read: FlagReader,
  ask: SglangQuestion,
  isRewritten: boolean,
  input: { chunk: number; graphMax: number; hasPrefillGraphs: boolean },
): { value: number; isGiven: boolean; notes: readonly string[] } {
  if (isRewritten) return { value: 0.8, isGiven: false, notes: [] };
  if (read.isGiven('mem-fraction-static')) return { value: read.count('mem-fraction-static', 0), isGiven: true, notes: [] };
  const { fraction, because } = defaultFraction(ask, input);
  return { value: fraction, isGiven: false, notes: [`--mem-fraction-static is not given: ${because}`] };
}

function resolveGraphs(read: FlagReader, ask: SglangQuestion): { batches: readonly number[]; most: number; hasPrefill: boolean } {
  const isOff = read.isOn('disable-cuda-graph') || read.text('cuda-graph-backend-decode') === 'disabled';
  const listed = [...read.list('cuda-graph-bs-decode')].sort((a, b) => a - b);
  const most = listed.at(-1) ?? read.count('cuda-graph-max-bs-decode', defaultGraphMax(ask));
  // Sizes above the most requests there can be are left out, though the reserve still counts them.
  const asked = read.count('max-running-requests', Number.POSITIVE_INFINITY);
  const perGroup = ask.isDpAttention ? Math.floor(asked / ask.dp) : asked;
  const batches = isOff ? [] : listed.length > 0 ? listed : listGraphBatches(ask.version, most);
  const isDefault = isAtLeast(ask.version, [0, 5, 10]) ?? true; // opt-in before
  const isPrefillOff =
    read.isOn('disable-cuda-graph') ||
    read.isOn('disable-piecewise-cuda-graph') ||
    read.text('cuda-graph-backend-prefill') === 'disabled';
  return {
    batches: batches.filter((size) => size <= perGroup),
    most: isOff && (isAtLeast(ask.version, [0, 5, 14]) ?? true) ? 0 : most,
    hasPrefill: !isPrefillOff && (isDefault || read.isOn('enable-piecewise-cuda-graph')),
  };
}

/** Parts of a launch that it may have or not have: host cache, draft, states, sliding layers. */
function resolveExtras(read: FlagReader, { version, shape }: LaunchQuestion, speculative: string) {
  const hierarchicalCache = resolveHierarchicalCache(read, isAtLeast(version, [0, 5, 2]) ?? true);
  return {
    ...(hierarchicalCache === undefined ? {} : { hierarchicalCache }),
    ...(speculative === '' ? {} : { speculative: resolveDraft(read, speculative) }),
    stateElementBytes: /^(bf|bfloat|float|fp)16$/.test(read.text('mamba-ssm-dtype')) ? 2 : 4,
    stateRatio: read.count('mamba-full-memory-ratio', 0.9),
    stateSlotsAsked: read.count('max-mamba-cache-size', 0),
    slidingRatio: read.isOn('disable-hybrid-swa-memory')
      ? 1
      : read.count('swa-full-tokens-ratio', hasCompression(shape) ? 0.1 : 0.8),
  };
}

/** Drafts of the EAGLE and MTP kinds have one layer, which is run several times. */
function resolveDraft(read: FlagReader, algorithm: string) {
  const isSeparate = read.text('speculative-draft-model-path') !== '';
  return { algorithm, draftLayers: 1, tokens: read.count('speculative-num-draft-tokens', 4), isSeparate };
}

function resolveHierarchicalCache(read: FlagReader, isWriteThrough: boolean): HierarchicalCacheFlags | undefined {
  if (!read.isOn('enable-hierarchical-cache')) return undefined;
  return {
    ratio: read.count('hicache-ratio', 2),
    sizeGB: read.count('hicache-size', 0),
    writePolicy: read.text('hicache-write-policy') || (isWriteThrough ? 'write_through' : 'write_through_selective'),
  };
}

function resolveScheduling(read: FlagReader, isDpAttention: boolean, speculative: string) {
  return {
    hasRadixCache: !read.isOn('disable-radix-cache'),
    isMixedChunk: read.isOn('enable-mixed-chunk') && speculative === '', // forced off with a draft
    schedulePolicy: read.text('schedule-policy') || 'fcfs',
    scheduleConservativeness: read.count('schedule-conservativeness', 1) * (isDpAttention ? 0.3 : 1),
  };
}

/** Some attention kernels work in pages of one size, whatever the flag says. */
function resolvePage(read: FlagReader, backend: string, { shape }: LaunchQuestion): number {
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
      return hasCompression(shape) ? 256 : hasIndexer(shape.caches) ? 64 : Math.max(1, asked);
  }
}

function refuse(read: FlagReader, ranks: Ranks, heads: number): string[] {
  const { tp, dp, isDpAttention, attentionTp } = ranks;
  const refusals: string[] = [];
  const fraction = read.count('mem-fraction-static', 0.5);
  if (fraction <= 0 || fraction >= 1) refusals.push(`--mem-fraction-static is ${fraction}; it lies between 0 and 1`);
  if (isDpAttention && tp % dp !== 0)
    refusals.push(`--tp-size ${tp} is not a multiple of --dp-size ${dp}, as DP attention needs`);
  if (heads % attentionTp !== 0) refusals.push(`${heads} attention heads do not divide by ${attentionTp} ranks`);
  if (read.isOn('enable-hierarchical-cache') && read.isOn('disable-radix-cache'))
    refusals.push('--enable-hierarchical-cache and --disable-radix-cache exclude each other');
  return refusals;
}
