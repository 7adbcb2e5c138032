/**
 * vLLM: pool = total × utilization − (weights + peak of a dummy step + memory outside torch) − graphs, the last only from 0.21 on; before,
 * graphs come on top. Utilization is a fraction of the whole card, and activations lie inside it: the number does not mean what SGLang's means.
 */
import { isAtLeast } from '../engine/version.ts';
import { countTokenBytes } from './bytes-per-token.ts';
import type { EngineLaunch } from './engine-launch.ts';
import { communicationGiB, cudaTotalGiB, estimateGraphsGiB, estimateVllmPeakGiB } from './estimate-memory.ts';
import type { Facts, Measured } from './facts.ts';
import { exactly, guessed, middleOf, minus, plus, rangeOf, times } from './intervals.ts';
import type { PlanInput } from './plan-input.ts';
import type { Interval, Prediction } from './prediction.ts';
import { gib, judgePlan } from './verdict.ts';
import { planBlocks } from './vllm-blocks.ts';
import { countWeightBytes } from './weights-per-gpu.ts';

const GIB = 2 ** 30;
const WEIGHTS_MISS = 0.02;
/** Driver and library memory of one process outside torch: 0.35 GiB (a profile printed by V0 on one GPU). */
const OUTSIDE_TORCH_GIB = guessed(0.35, 0.15);

export function predictVllm(input: PlanInput): Prediction {
  const { shape, launch, gpu } = input;
  const parts = gatherParts(input);
  const total = parts.total.value;
  const budget = times(rangeOf(parts.total), launch.memoryFraction);
  const hasGraphsInside = isAtLeast(launch.version, [0, 21, 0]) ?? true;
  const graphs = rangeOf(parts.graphs);
  const taken = plus(plus(rangeOf(parts.weights), rangeOf(parts.rest)), hasGraphsInside ? graphs : exactly(0));
  const available = findAvailable(input, minus(budget, taken), parts);
  const blocks = planBlocks(shape, launch);
  const bytes = countTokenBytes(shape, launch);
  const tokensAt = (GiB: number) => capTokens(blocks.tokensOf(Math.max(0, GiB) * GIB), launch);
  const own = input.observations.find((one) => one.launch === undefined || one.launch === launch)?.facts;
  const tokens = own?.poolTokens ?? tokensAt(middleOf(available));
  const range =
    own?.poolTokens === undefined ? { low: tokensAt(available.low), high: tokensAt(available.high) } : exactly(own.poolTokens);
  const free = minus(exactly(total * (1 - launch.memoryFraction)), hasGraphsInside ? exactly(0) : graphs);
  const judged = judgePlan({
    refusals: launch.refusals,
    noPool: describeNoPool(middleOf(available), blocks.bytesOfLongest / GIB, launch),
    freeAfterGraphs: own?.freeAfterGraphsGiB === undefined ? free : rangeOf(own.freeAfterGraphsGiB),
    need: exactly(0), // the profile has set aside what a step needs
    poolTokens: tokens,
    neededTokens: input.longestRequestTokens ?? Math.min(launch.contextTokens, launch.prefillChunkTokens),
  });
  return {
    poolTokens: tokens,
    poolTokensRange: range,
    serverTokens: tokens * launch.dp,
    bytesPerToken: bytes.bytes,
    bytesPerTokenBecause: bytes.because,
    weightsGiBPerGpu: parts.weights.value,
    freeBeforeLoadGiB: total - parts.outsideTorch.value,
    poolGiB: middleOf(available),
    statePoolGiB: 0,
    graphsGiB: parts.graphs.value,
    requestTableGiB: 0,
    freeAfterGraphsGiB: own?.freeAfterGraphsGiB?.value ?? middleOf(free),
    prefillNeedGiB: exactly(0),
    maxRunningRequests: launch.maxRunningAsked,
    hostCache: { GiBPerRank: 0, GiBTotal: 0, tokens: 0 },
    ...judged,
    cautions: [...judged.cautions, ...launch.notes],
    sources: [...parts.sources, ...shape.sources, ...gpu.sources],
    errorPercent: tokens === 0 ? 0 : ((range.high - range.low) / 2 / tokens) * 100,
    notModelled: shape.notModelled,
  };
}

interface Parts {
  readonly total: Measured;
  readonly outsideTorch: Measured;
  readonly weights: Measured;
  /** Peak of the dummy step and what lies outside torch. */
  readonly rest: Measured;
  readonly graphs: Measured;
  /** Budget minus pool, at the launch that measured a pool. */
  readonly outside: Interval | undefined;
  readonly sources: readonly string[];
}

type MeasureName = 'weightsGiBPerGpu' | 'graphsGiB' | 'totalGiB' | 'activationsGiB' | 'outsideTorchGiB';

/** CUDA's total is known to 0.1 GiB from what the driver reports. */
const TOTAL_MISS_GIB = 0.1;
/** Of the peak of a dummy step that nobody measured. */
const PEAK_MISS = 0.3;

function gatherParts({ shape, launch, gpu, observations }: PlanInput): Parts {
  const sources: string[] = [];
  const find = (name: MeasureName): Measured | undefined => {
    const from = observations.find(({ facts }) => facts[name] !== undefined);
    if (from !== undefined) sources.push(`measured: ${from.source}`);
    return from?.facts[name];
  };
  const counted = countWeightBytes(shape, launch) / GIB;
  const estimatedPeak = estimateVllmPeakGiB(shape, launch);
  const estimatedGraphs = launch.graphBatches.length === 0 ? 0 : estimateGraphsGiB(shape, launch);
  const groups = communicationGiB(gpu, launch);
  const total = find('totalGiB') ?? guessed(cudaTotalGiB(gpu), TOTAL_MISS_GIB);
  const weights = find('weightsGiBPerGpu') ?? guessed(counted, counted * WEIGHTS_MISS);
  const graphs = find('graphsGiB') ?? guessed(estimatedGraphs, estimatedGraphs / 2);
  const peak = find('activationsGiB') ?? guessed(estimatedPeak, estimatedPeak * PEAK_MISS);
  const outsideTorch = find('outsideTorchGiB') ?? add(OUTSIDE_TORCH_GIB, groups);
  const measured = observations.find(({ facts }) => facts.poolGiB !== undefined || facts.poolTokens !== undefined);
  const outside = measured === undefined ? undefined : outsideOf(measured.facts, shape, measured.launch ?? launch, total);
  if (measured !== undefined) sources.push(`pool measured: ${measured.source}`);
  if (sources.length === 0) sources.push('weights, activations and graphs estimated');
  return { total, outsideTorch, weights, rest: add(peak, outsideTorch), graphs, outside, sources: [...new Set(sources)] };
}

function add(a: Measured, b: Measured): Measured {
  return guessed(a.value + b.value, a.halfWidth + b.halfWidth);
}

/** What lies in the budget beside the pool does not change with the utilization, so one printed pool tells it. */
function outsideOf(facts: Facts, shape: PlanInput['shape'], launch: EngineLaunch, total: Measured): Interval {
  const budget = exactly(total.value * launch.memoryFraction);
  if (facts.poolGiB !== undefined) return minus(budget, rangeOf(facts.poolGiB));
  const bytes = countTokenBytes(shape, launch).bytes / launch.dcp;
  const tokens = facts.poolTokens ?? 0;
  return minus(budget, { low: (tokens * bytes) / GIB, high: ((tokens + launch.pageTokens) * bytes) / GIB });
}

function findAvailable({ launch }: PlanInput, estimated: Interval, { outside, total }: Parts): Interval {
  if (launch.kvCacheBytesAsked > 0) return exactly(launch.kvCacheBytesAsked / GIB);
  return outside === undefined ? estimated : minus(exactly(total.value * launch.memoryFraction), outside);
}

function capTokens(tokens: number, launch: EngineLaunch): number {
  return launch.maxTotalTokensAsked > 0 ? launch.maxTotalTokensAsked : tokens;
}

function describeNoPool(availableGiB: number, longestGiB: number, launch: EngineLaunch): string {
  if (availableGiB <= 0)
    return `a utilization of ${launch.memoryFraction} leaves no memory for the cache: ${gib(-availableGiB)} GiB are missing`;
  if (availableGiB >= longestGiB) return '';
  return `one request of ${launch.contextTokens} tokens needs ${gib(longestGiB)} GiB of cache and ${gib(availableGiB)} are there: raise the utilization or lower --max-model-len`;
}
