/**
 * What else reaches the capacity: levers that leave the numbers of the model alone, tried alone and together, and one
 * that changes them, for comparison. Pure. Each candidate is calculated like the launch that was asked about; what does not
 * live is left out, what policy forbids is marked and never recommended.
 */
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import type { ModelShape } from '../../capacity/model-shape.ts';
import { FLAG_TABLES } from '../../capacity/plan-launch.ts';
import { parseFlagWords } from '../../engine/launch-flags.ts';
import { findLever, type Lever } from '../../engine/levers.ts';
import { isAtLeast } from '../../engine/version.ts';
import { type Candidate, evaluate, isForbidden, type PlanBasis } from './candidate.ts';

export interface Alternative {
  /** Flags to write in place of, or beside, those that are there. */
  readonly changes: readonly string[];
  /** What the changes do to the answers: nothing, the order of sums, or the numerics themselves. */
  readonly effect: Lever['effect'];
  readonly because: string;
  readonly candidate: Candidate;
}

interface Try {
  readonly words: readonly string[];
  readonly because: string;
}

/** Gains below this are inside the error of any plan. */
const LEAST_GAIN = 1.02;
/** More are not read. */
const MOST_SHOWN = 6;
const FRACTION_STEP = 0.01;
const HIGHEST_FRACTION = 0.97;

/** Better launches than `base`, the fastest first (the largest pool where speed is not known). */
export function findAlternatives(basis: PlanBasis, base: Candidate): Alternative[] {
  const found = leversFor(basis, base).flatMap((lever): Alternative[] => {
    const words = [...lever.words, ...bestFraction(basis, [...base.words, ...lever.words])];
    if (words.length === 0) return [];
    const candidate = evaluate(basis, [...base.words, ...words]);
    if (candidate.prediction.verdict !== 'fits') return [];
    return [{ changes: words, effect: effectOf(basis.engine, words), because: lever.because, candidate }];
  });
  const least = worthOf(base) * LEAST_GAIN;
  const better = found.filter(({ candidate }) => worthOf(candidate) > least);
  const seen = new Set<string>();
  return better
    .sort((a, b) => worthOf(b.candidate) - worthOf(a.candidate))
    .filter(({ changes }) => !seen.has(changes.join(' ')) && seen.add(changes.join(' ')))
    .slice(0, MOST_SHOWN);
}

/** The smallest change of the fraction, then of other levers, that makes a launch live; undefined where none does. */
export function findNearestThatWorks(basis: PlanBasis, base: Candidate): Alternative | undefined {
  // Parallelism is a change of another kind: whoever wants it finds it among the alternatives.
  const small = leversFor(basis, base).filter(
    ({ words }) => !words.some((word) => PARALLEL.test(word)) && /none|order/.test(effectOf(basis.engine, words)),
  );
  for (const lever of [{ words: [], because: 'another fraction alone' }, ...small]) {
    for (const fraction of fractionsAround(base.launch.memoryFraction)) {
      const changes = [...lever.words, FRACTION_FLAG[basis.engine], fraction];
      const candidate = evaluate(basis, [...base.words, ...changes]);
      if (hasRoom(candidate)) return { changes, effect: effectOf(basis.engine, changes), because: lever.because, candidate };
    }
  }
  return undefined;
}

const PARALLEL = /^--(dp-size|dcp-size|decode-context-parallel-size)$/;

/** The nearest first, a step down before a step up. */
function fractionsAround(from: number): string[] {
  const steps = Math.ceil(1 / FRACTION_STEP);
  const around = Array.from({ length: steps }, (_, at) => at * FRACTION_STEP).flatMap((off) => [from - off, from + off]);
  return [...new Set(around.filter((one) => one > 0 && one <= HIGHEST_FRACTION).map((one) => one.toFixed(3).replace(/0$/, '')))];
}

/** It lives, and the largest prefill chunk that is likely has room. */
function hasRoom({ prediction }: Candidate): boolean {
  return prediction.verdict === 'fits' && prediction.freeAfterGraphsGiB >= prediction.prefillNeedGiB.high;
}

const FRACTION_FLAG: Readonly<Record<PlannedEngine, string>> = {
  sglang: '--mem-fraction-static',
  vllm: '--gpu-memory-utilization',
};

/**
 * The highest fraction at which a whole prefill chunk has room, less one step for unattended use (a run of days meets larger
 * prefills, and memory that fragments). Empty where none does, or where it is the one that is there.
 */
function bestFraction(basis: PlanBasis, words: readonly string[]): string[] {
  const flag = FRACTION_FLAG[basis.engine];
  for (let fraction = HIGHEST_FRACTION; fraction > 0.3; fraction -= FRACTION_STEP) {
    if (hasRoom(evaluate(basis, [...words, flag, fraction.toFixed(2)]))) return [flag, (fraction - FRACTION_STEP).toFixed(2)];
  }
  return [];
}

/** Tokens a second where they are known, else tokens of the pool: what more of is better. */
function worthOf({ steady, prediction }: Candidate): number {
  if (prediction.verdict !== 'fits') return 0;
  return steady?.tokensPerSecond ?? prediction.serverTokens;
}

/** The strongest effect of any of the flags, as the levers table has it. */
function effectOf(engine: PlannedEngine, words: readonly string[]): Lever['effect'] {
  const effects = Object.keys(parseFlagWords(words, FLAG_TABLES[engine]).values).map((name) => findLever(engine, name).effect);
  return (['unknown', 'numerics', 'order'] as const).find((effect) => effects.includes(effect)) ?? 'none';
}

function leversFor(basis: PlanBasis, base: Candidate): Try[] {
  const single = basis.engine === 'sglang' ? sglangLevers(basis, base) : vllmLevers(basis, base);
  const small = single.filter(({ words }) => /running-requests|num-seqs|chunked|batched|prefill/.test(words.join(' ')));
  const together: Try = {
    words: small.flatMap(({ words }) => words),
    because: 'all of the small reserves together',
  };
  return [
    { words: [], because: 'the fraction that leaves a prefill chunk its room' },
    ...single,
    ...(small.length > 1 ? [together] : []),
    ...lossyLevers(basis, base),
  ];
}

function sglangLevers({ version, shape, load }: PlanBasis, { launch, steady }: Candidate): Try[] {
  const levers: Try[] = [];
  const from = (...least: [number, number, number]) => isAtLeast(version === '' ? launch.version : version, least) ?? true;
  const cap = roomyCap(load.inFlight, steady?.running);
  if ((launch.maxRunningAsked || 2048) > cap)
    levers.push(
      tryOf(
        ['--max-running-requests', cap, '--cuda-graph-max-bs', cap],
        'a smaller request table and fewer graphs: more is never in flight',
      ),
    );
  if (launch.prefillChunkTokens > 4096)
    levers.push(
      tryOf(['--chunked-prefill-size', 4096], 'a smaller prefill needs less room beside the pool; prompts take a little longer'),
    );
  if (launch.hasPrefillGraphs)
    levers.push(
      tryOf(
        from(0, 5, 14) ? ['--cuda-graph-backend-prefill', 'disabled'] : ['--disable-piecewise-cuda-graph'],
        'no graphs for prefills',
      ),
    );
  if (launch.scheduleConservativeness >= 1)
    levers.push(
      tryOf(
        ['--schedule-conservativeness', 0.3],
        'less of the pool is held back for answers that end early; watch the retractions',
      ),
    );
  if (copiesOver(shape, launch.attentionTp) > 1 && !launch.isDpAttention)
    for (const dp of [2, 4].filter((groups) => launch.tp % groups === 0 && groups < launch.tp))
      levers.push(
        tryOf(
          ['--enable-dp-attention', '--dp-size', dp, '--cuda-graph-max-bs', 96],
          `${dp} groups with a pool each: latent attention is no longer copied over all ranks; attention weights take more`,
        ),
      );
  if (hasLatent(shape) && from(0, 5, 16) && launch.dcp === 1)
    for (const dcp of [2, 4].filter((ranks) => launch.tp % ranks === 0 && ranks <= copiesOver(shape, launch.tp)))
      levers.push(
        tryOf(
          ['--dcp-size', dcp, '--attention-backend', 'flashinfer'],
          `positions of a request spread over ${dcp} ranks; new, try it first`,
        ),
      );
  return levers;
}

/** Three times what is expected to run, so that the cap itself never limits: the estimate may be off, and levers add to it. */
function roomyCap(inFlight: number, running: number | undefined): number {
  return Math.max(64, Math.ceil(Math.min(inFlight, 3 * (running ?? inFlight)) / 64) * 64);
}

function vllmLevers({ version, shape, load }: PlanBasis, { launch, steady, prediction }: Candidate): Try[] {
  const levers: Try[] = [];
  const cap = roomyCap(load.inFlight, steady?.running);
  if (launch.maxRunningAsked > cap)
    levers.push(tryOf(['--max-num-seqs', cap], 'less for the sampler and the graphs: more is never in flight'));
  if (launch.prefillChunkTokens > 4096)
    levers.push(tryOf(['--max-num-batched-tokens', 4096], 'a smaller step needs less room beside the pool'));
  const hasDcp = isAtLeast(version === '' ? launch.version : version, [0, 11, 0]) ?? true;
  // What a pool of this size holds at once, less a twentieth for other requests; down to a round number.
  const longest = Math.floor((0.95 * prediction.poolTokens) / 1024) * 1024;
  if (prediction.poolTokens < launch.contextTokens && longest > 0)
    levers.push(tryOf(['--max-model-len', longest], 'one request of the whole context does not fit the pool'));
  if (hasDcp && launch.dcp === 1)
    for (const dcp of [2, 4, 8].filter((ranks) => launch.tp % ranks === 0 && ranks <= copiesOver(shape, launch.tp)))
      levers.push(tryOf(['--decode-context-parallel-size', dcp], `positions of a request spread over ${dcp} ranks`));
  return levers;
}

function lossyLevers({ engine }: PlanBasis, { launch }: Candidate): Try[] {
  if (launch.kvType.bits <= 8) return [];
  const type = engine === 'sglang' ? 'fp8_e4m3' : 'fp8';
  return [{ words: ['--kv-cache-dtype', type], because: 'KV elements of 8 bits: twice the tokens, other numbers' }];
}

function tryOf(words: readonly (string | number)[], because: string): Try {
  return { words: words.map(String), because };
}

function hasLatent(shape: ModelShape): boolean {
  return shape.caches.some(({ kind }) => kind === 'latent');
}

/**
 * Ranks that hold the same KV: all of them with latent vectors, tp ÷ heads where ranks outnumber KV heads, else 1. More of
 * them cannot share the positions of a request.
 */
function copiesOver(shape: ModelShape, ranks: number): number {
  const copies = shape.caches.flatMap((group) => {
    if (group.kind === 'latent' || group.kind === 'compressed') return [ranks];
    return group.kind === 'heads' ? [Math.max(1, Math.floor(ranks / group.kvHeads))] : [];
  });
  return copies.length === 0 ? 1 : Math.min(...copies);
}

export interface PolicyPrice {
  /** Why: the rule's words. */
  readonly because: string;
  readonly by: string;
  readonly bestAllowed: Candidate;
  readonly bestForbidden: Candidate;
}

/** What the rules cost: the best launch that keeps them beside the best that does not. Undefined where no rule stands in the way of anything. */
export function pricePolicy(base: Candidate, alternatives: readonly Alternative[]): PolicyPrice | undefined {
  const all = [base, ...alternatives.map(({ candidate }) => candidate)];
  const best = (candidates: readonly Candidate[]) =>
    candidates.reduce<Candidate | undefined>(
      (one, two) => (one !== undefined && worthOf(one) >= worthOf(two) ? one : two),
      undefined,
    );
  const bestAllowed = best(all.filter((candidate) => !isForbidden(candidate)));
  const bestForbidden = best(all.filter(isForbidden));
  const broken = bestForbidden?.policy.find(({ kept }) => !kept);
  if (bestAllowed === undefined || bestForbidden === undefined || broken === undefined) return undefined;
  return { because: broken.rule.because, by: broken.rule.by, bestAllowed, bestForbidden };
}
