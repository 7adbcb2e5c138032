/** SGLang: what a launch will hold, and whether it will live. See `predict.ts`. */
import { AerieError } from '../base/errors.ts';
import { isAtLeast } from '../engine/version.ts';
import { countTokenBytes } from './bytes-per-token.ts';
import type { EngineLaunch } from './engine-launch.ts';
import { estimateGraphsGiB, estimatePrefillNeed, guessFreeBeforeLoad, requestTableGiB } from './estimate-memory.ts';
import { exactly, guessed, middleOf, minus, plus, rangeOf, times } from './intervals.ts';
import type { Observation, PlanInput } from './plan-input.ts';
import type { Interval, Prediction } from './prediction.ts';
import { boundByPool, imageReserveGiB, type Pool, sizePool } from './sglang-pool.ts';
import { type Bound, type Region, solveMemory } from './solve-memory.ts';
import { gib, judgePlan } from './verdict.ts';
import { countWeightBytes } from './weights-per-gpu.ts';

const GIB = 2 ** 30;
/** Weights counted from a config: −0.7 % at the one place where a log tells (Kimi-K2.5), 2 % with other formats. */
const WEIGHTS_MISS = 0.02;
/**
 * What loading takes beyond the weights (rounding of blocks, scales, kernels): 15.11 − 14.96 for Llama-3.1-8B, 0.98 − 0.92 for Qwen2-0.5B,
 * 8.13 − 8.04 for Gemma-3-4B, 72.33 − 71.93 for Kimi-K2.5.
 */
const LOADED_SHARE = 1.005;
const LOADED_GIB = 0.06;
/** Graphs and workspaces nobody measured: 1 GiB between versions. */
const GRAPHS_MISS_GIB = 1;
/** The pool is sized by the rank with the least memory, and a log has the figures of rank 0: up to 0.02 GiB apart in two public logs. */
const RANK_SPREAD_GIB = 0.03;
/** Fragments that the allocator keeps or gives back. */
const FRAGMENTS_GIB = 0.05;

export function predictSglang(input: PlanInput): Prediction {
  const { shape, launch, gpu } = input;
  const { region, sources, rankSpread } = gatherBounds(input);
  const bytes = countTokenBytes(shape, launch);
  const slack = 1 - launch.memoryFraction;
  const rest = minus(region.extremes(-slack, 1), exactly(imageReserveGiB(shape, launch)));
  const middle = middleOf(rest);
  const printed = ownTokens(input);
  const pool = printedPool(printed, bytes.bytes, sizePool(middle, shape, launch));
  const range =
    printed === undefined
      ? { low: sizePool(rest.low - rankSpread, shape, launch).tokens, high: sizePool(rest.high, shape, launch).tokens }
      : exactly(printed);
  const running = capRunning(pool, launch);
  const table = requestTableGiB(running, launch.contextTokens);
  const others = findGraphs(input, region);
  const before = region.extremes(1, 0);
  const unspent = Math.max(0, middle - pool.poolGiB - pool.stateGiB);
  const free = ownFree(input) ?? minus(plus(times(before, slack), exactly(unspent - table)), rangeOf(others.measured));
  const need = estimatePrefillNeed(shape, launch);
  const host = sizeHostCache(pool.tokens, bytes.bytes, launch);
  const judged = judgePlan({
    refusals: launch.refusals,
    noPool: describeNoPool(pool, region, launch) || describeSmallHost(pool, host, launch),
    freeAfterGraphs: free,
    need,
    poolTokens: pool.tokens,
    neededTokens: neededTokens(input),
  });
  const groups = launch.dp * launch.dcp;
  return {
    poolTokens: pool.tokens,
    poolTokensRange: range,
    serverTokens: pool.tokens * groups,
    bytesPerToken: bytes.bytes,
    bytesPerTokenBecause: bytes.because,
    weightsGiBPerGpu: middleOf(region.extremes(1, -1)),
    freeBeforeLoadGiB: middleOf(before),
    poolGiB: pool.poolGiB,
    statePoolGiB: pool.stateGiB,
    graphsGiB: others.measured.value,
    requestTableGiB: table,
    freeAfterGraphsGiB: middleOf(free),
    prefillNeedGiB: need,
    maxRunningRequests: running,
    hostCache: host,
    ...judged,
    cautions: [...judged.cautions, ...launch.notes, ...warn(input, pool, region)],
    sources: [...sources, ...shape.sources, ...gpu.sources, others.source],
    errorPercent: pool.tokens === 0 ? 0 : ((range.high - range.low) / 2 / pool.tokens) * 100,
    notModelled: shape.notModelled,
  };
}

/** Everything that is known of memory before (x) and after (y) the weights: facts first, and a guess for what they leave open. */
function gatherBounds(input: PlanInput): { region: Region; sources: string[]; rankSpread: number } {
  const { shape, launch, gpu, observations } = input;
  const sources: string[] = [];
  const bounds = observations.flatMap((observation) => {
    const found = boundsOf(observation, input);
    if (found.length > 0) sources.push(`measured: ${observation.source}`);
    return found;
  });
  // Two bounds of different directions close the region; one leaves it open on one side, none on both.
  const isClosed = bounds.some((one) => bounds.some((other) => one.x * other.y !== other.x * one.y));
  if (!isClosed && !bounds.some((bound) => bound.y === 0)) {
    bounds.push({ x: 1, y: 0, range: rangeOf(guessFreeBeforeLoad(gpu, launch)) });
    sources.push('free memory before the weights estimated from the GPU');
  }
  if (!isClosed && bounds.every((bound) => bound.y === 0)) {
    const counted = countWeightBytes(shape, launch) / GIB;
    const weights = counted * LOADED_SHARE + LOADED_GIB;
    bounds.push({ x: 1, y: -1, range: rangeOf(guessed(weights, weights * WEIGHTS_MISS)) });
    sources.push('weights estimated');
  }
  const region = solveMemory(bounds);
  if (region === undefined) throw contradiction(input);
  if (region.slack > 0)
    sources.push(`the facts contradict each other by ${gib(region.slack)} GiB; they may be of different ranks`);
  // Bounds of both kinds of sums: a pool is that of all ranks, free memory that of one.
  const isOfOneRank = bounds.every((bound) => bound.x === 0 || bound.x === 1);
  return { region, sources, rankSpread: isOfOneRank && launch.tp * launch.pp > 1 ? RANK_SPREAD_GIB : 0 };
}

function contradiction({ observations }: PlanInput): AerieError {
  const given = observations.flatMap(({ facts, source }) =>
    Object.entries(facts).map(([name, fact]) => `${name} ${typeof fact === 'number' ? fact : String(fact?.value)} (${source})`),
  );
  return new AerieError('facts.contradict', 'These facts cannot be of one launch: they differ by more than 8 GiB.', {
    because: given.join(', '),
    remedy: 'Take all figures from one log, in GiB and per GPU, and leave out what is not sure.',
  });
}

function boundsOf({ facts, launch }: Observation, input: PlanInput): Bound[] {
  const measures = [
    { x: 1, y: 0, measured: facts.freeBeforeLoadGiB },
    { x: 0, y: 1, measured: facts.freeAfterLoadGiB },
    { x: 1, y: -1, measured: facts.weightsGiBPerGpu },
  ];
  const direct = measures.flatMap(({ x, y, measured }) => (measured === undefined ? [] : [{ x, y, range: rangeOf(measured) }]));
  const pool = boundByPool(facts, input.shape, launch ?? input.launch);
  // Free after the weights, there = free after the weights, here − what they take more there.
  const more = heavierGiB(input, launch ?? input.launch);
  return (pool === undefined ? direct : [...direct, pool]).map(({ x, y, range }) => ({
    x,
    y,
    range: { low: range.low + y * more, high: range.high + y * more },
  }));
}

/** GiB per GPU that the weights took more where it was measured than at this launch: DP attention and another tp lay them out otherwise. */
function heavierGiB({ shape, launch }: PlanInput, measured: EngineLaunch): number {
  return (countWeightBytes(shape, measured) - countWeightBytes(shape, launch)) / GIB;
}

/** The launch that is asked about has said its pool itself. */
function ownTokens({ observations, launch }: PlanInput): number | undefined {
  return observations.find((one) => one.launch === undefined || one.launch === launch)?.facts.poolTokens;
}

function ownFree({ observations, launch }: PlanInput): Interval | undefined {
  const own = observations.find((one) => one.launch === undefined || one.launch === launch)?.facts.freeAfterGraphsGiB;
  return own === undefined ? undefined : rangeOf(own);
}

function printedPool(printed: number | undefined, bytes: number, sized: Pool): Pool {
  return printed === undefined ? sized : { ...sized, tokens: printed, poolGiB: (printed * bytes) / GIB };
}

/** Requests that run at once, as the engine caps them. */
function capRunning(pool: Pool, launch: EngineLaunch): number {
  const groups = launch.isDpAttention ? launch.dp : 1;
  const automatic = Math.min(Math.max(Math.floor((pool.tokens / Math.max(1, launch.contextTokens)) * 512), 2048), 4096);
  const wanted = launch.maxRunningAsked > 0 ? Math.floor(launch.maxRunningAsked / groups) : automatic;
  const byPool = Math.min(wanted, Math.floor(pool.tokens / 2));
  // Hybrid models hold up to three states for each request: running, in the tree, and one in transit.
  return pool.stateSlots > 0
    ? Math.min(byPool, launch.hasRadixCache ? Math.floor(pool.stateSlots / 3) : pool.stateSlots)
    : byPool;
}

/** What graphs and workspaces take: measured here, measured at another launch and scaled, or estimated. */
function findGraphs(input: PlanInput, region: Region): { measured: { value: number; halfWidth: number }; source: string } {
  const { shape, launch, observations } = input;
  const estimate = estimateGraphsGiB(shape, launch);
  for (const observation of observations) {
    const of = observation.launch ?? launch;
    const ratio = estimate / estimateGraphsGiB(shape, of);
    const fromFree = graphsFromFree(observation, of, input, region);
    if (fromFree !== undefined)
      return {
        measured: guessed(fromFree * ratio, FRAGMENTS_GIB + Math.abs(1 - ratio)),
        source: `graphs measured: ${observation.source}`,
      };
    const { graphsGiB } = observation.facts;
    if (graphsGiB === undefined) continue;
    const bare = estimateGraphsGiB(shape, { ...of, graphBatches: [], hasPrefillGraphs: false });
    return {
      measured: guessed((graphsGiB.value + bare) * ratio, 0.3 + Math.abs(1 - ratio)),
      source: `graphs measured: ${observation.source}`,
    };
  }
  return { measured: guessed(estimate, GRAPHS_MISS_GIB), source: 'graphs and workspaces estimated' };
}

/** after − pool − states − table − free. */
function graphsFromFree(observation: Observation, of: EngineLaunch, input: PlanInput, region: Region): number | undefined {
  const { freeAfterGraphsGiB, poolTokens } = observation.facts;
  if (freeAfterGraphsGiB === undefined) return undefined;
  const { shape } = input;
  const more = heavierGiB(input, of);
  const rest = middleOf(region.extremes(-(1 - of.memoryFraction), 1)) - more - imageReserveGiB(shape, of);
  const pool = printedPool(poolTokens, countTokenBytes(shape, of).bytes, sizePool(rest, shape, of));
  const table = requestTableGiB(capRunning(pool, of), of.contextTokens);
  return middleOf(region.extremes(0, 1)) - more - pool.poolGiB - pool.stateGiB - table - freeAfterGraphsGiB.value;
}

function describeNoPool(pool: Pool, region: Region, launch: EngineLaunch): string {
  if (pool.tokens > launch.pageTokens) return '';
  const before = middleOf(region.extremes(1, 0));
  const after = middleOf(region.extremes(0, 1));
  const least = 1 - after / before;
  return `the weights leave no memory for the pool at a fraction of ${launch.memoryFraction.toFixed(3)}: ${gib(before)} GiB are free before them and ${gib(after)} after, so the fraction must be above ${least.toFixed(3)}`;
}

/** Up to 0.5.14 the host's cache must be larger than the pool of the GPU, or the start ends in an assertion. */
function describeSmallHost(pool: Pool, host: Prediction['hostCache'], launch: EngineLaunch): string {
  if (launch.hierarchicalCache === undefined || host.tokens > pool.tokens || (isAtLeast(launch.version, [0, 5, 15]) ?? true))
    return '';
  return `the hierarchical cache of ${host.tokens} tokens must be larger than the pool of ${pool.tokens}: raise --hicache-size or --hicache-ratio`;
}

/** The pool must at least hold one prefill chunk, or one request of the length that is asked for. */
function neededTokens({ longestRequestTokens, launch }: PlanInput): number {
  const chunk = launch.prefillChunkTokens > 0 ? launch.prefillChunkTokens : launch.maxPrefillTokens;
  return longestRequestTokens ?? Math.min(Math.max(1, launch.contextTokens), chunk);
}

function warn({ launch }: PlanInput, pool: Pool, region: Region): string[] {
  const cautions: string[] = [];
  if (pool.tokens > 0 && pool.tokens < launch.contextTokens)
    cautions.push(`a request can have ${pool.tokens} tokens, not the ${launch.contextTokens} of the model: the pool is smaller`);
  if (launch.memoryFraction > 0.95) cautions.push('a fraction above 0.95 leaves next to nothing for activations');
  if (region.slack > 0.05) cautions.push(`the facts contradict each other by ${gib(region.slack)} GiB`);
  return cautions;
}

/** Sizes in decimal GB for each rank, or a multiple of the pool; each rank of latent attention holds the same tokens again. */
function sizeHostCache(poolTokens: number, bytesPerToken: number, launch: EngineLaunch): Prediction['hostCache'] {
  const flags = launch.hierarchicalCache;
  if (flags === undefined || bytesPerToken === 0) return { GiBPerRank: 0, GiBTotal: 0, tokens: 0 };
  const page = launch.pageTokens;
  const wanted = flags.sizeGB > 0 ? Math.floor((flags.sizeGB * 1e9) / bytesPerToken) : Math.floor(poolTokens * flags.ratio);
  const tokens = Math.ceil(wanted / page) * page;
  const ranks = launch.tp * launch.pp * (launch.isDpAttention ? 1 : launch.dp);
  const GiBPerRank = (tokens * bytesPerToken) / GIB;
  return { GiBPerRank, GiBTotal: GiBPerRank * ranks, tokens };
}
