/**
 * The launch that the arithmetic gives when memory ran out: levers × fractions, each calculated. Pure.
 * Promises: nothing that would die is offered; what leaves a whole prefill chunk its room goes before what may just do; among those the
 * largest pool wins, then the cheapest levers (or the other way round, where the search says so).
 */
import type { Plan } from '../../capacity/plan-launch.ts';
import type { Prediction } from '../../capacity/prediction.ts';
import { gib } from '../../capacity/verdict.ts';
import { changeFlag } from './changes.ts';
import { FRACTION, judgeCandidate } from './judge-candidate.ts';
import { memoryLevers, type Setting } from './memory-levers.ts';
import { neededRoom, type RoomFor } from './needed-room.ts';
import { type Predict, summarise } from './predict-candidate.ts';
import type { Flags, LaunchChange, PredictedLaunch, RecoveryQuestion } from './recovery.ts';

export interface Found {
  readonly changes: readonly LaunchChange[];
  readonly because: string;
  readonly predicted: PredictedLaunch | undefined;
}

export interface Outcome {
  readonly found: Found | undefined;
  /** What was not taken, and why. */
  readonly passedOver: readonly string[];
}

export interface Search {
  /** The highest first. */
  readonly fractions: readonly number[];
  /** pool: the largest pool, by whatever levers. levers: as few levers as will do, then the largest pool. */
  readonly first: 'pool' | 'levers';
  /** The pool must become larger than it was. */
  readonly mustGrow?: boolean;
}

interface Option {
  readonly changes: readonly LaunchChange[];
  readonly plan: Plan;
  /** For the most that a prefill is likely to need; else for the least. */
  readonly hasRoom: boolean;
}

/** Undefined: the arithmetic cannot say, because it cannot say anything of the launch that ended. */
export function searchMemory(question: RecoveryQuestion, predict: Predict, search: Search): Outcome | undefined {
  const last = question.tries.at(-1);
  const base = last === undefined ? undefined : predict(last.flags);
  if (last === undefined || base === undefined) return undefined;
  const needs = neededRoom(question, predict);
  const passedOver = new Map<string, string>();
  const narrow: Option[] = [];
  for (const { settings, fraction } of inOrder(memoryLevers(question, last.flags), search)) {
    const changes = changesOf(question, { flags: last.flags, base, settings, fraction });
    if (changes.length === 0) continue;
    const { plan, refusal } = judgeCandidate(question, changes, predict);
    const lacks = refusal || judgePlan(plan, { base, needs, search });
    // One example of each reason is enough.
    if (lacks !== '') passedOver.set(kindOf(lacks), passedOver.get(kindOf(lacks)) ?? `${nameChanges(changes)}: ${lacks}`);
    if (lacks !== '' || plan === undefined) continue;
    const option = { changes, plan, hasRoom: plan.prediction.freeAfterGraphsGiB >= needs(plan).high };
    if (option.hasRoom) return { found: explain(option, base, needs), passedOver: [...passedOver.values()] };
    narrow.push(option);
  }
  // None has room for the most that is likely: the one with the most room of those that may do.
  const [best] = narrow.sort((a, b) => b.plan.prediction.freeAfterGraphsGiB - a.plan.prediction.freeAfterGraphsGiB);
  return { found: best === undefined ? undefined : explain(best, base, needs), passedOver: [...passedOver.values()] };
}

/** The best first: a higher fraction has the larger pool, an earlier combination the cheaper levers. */
function inOrder(
  levers: readonly (readonly Setting[])[],
  { fractions, first }: Search,
): { readonly settings: readonly Setting[]; readonly fraction: number }[] {
  return first === 'pool'
    ? fractions.flatMap((fraction) => levers.map((settings) => ({ settings, fraction })))
    : levers.flatMap((settings) => fractions.map((fraction) => ({ settings, fraction })));
}

function kindOf(reason: string): string {
  return reason.replaceAll(/\d[\d.]*/g, '#');
}

interface Wanted {
  readonly base: Plan;
  readonly needs: RoomFor;
  readonly search: Search;
}

/** '' where the launch lives. */
function judgePlan(plan: Plan | undefined, { base, needs, search }: Wanted): string {
  if (plan === undefined) return 'the arithmetic cannot say';
  if (search.mustGrow === true && poolOf(plan) <= poolOf(base)) return 'the pool would not grow';
  return lacksRoom(plan, needs);
}

function nameChanges(changes: readonly LaunchChange[]): string {
  return changes.map(({ name, to }) => `${name} ${String(to)}`).join(', ');
}

function poolOf({ prediction }: Plan): number {
  return prediction.serverTokens;
}

function lacksRoom(plan: Plan, needs: RoomFor): string {
  const { verdict, because, freeAfterGraphsGiB: free } = plan.prediction;
  if (verdict !== 'fits') return because;
  const { low, high } = needs(plan);
  return free >= low ? '' : `${gib(free)} GiB would be left after graph capture, and ${gib(low)} to ${gib(high)} are needed`;
}

interface Draft {
  readonly flags: Flags;
  readonly base: Plan;
  readonly settings: readonly Setting[];
  readonly fraction: number;
}

function changesOf({ engine }: RecoveryQuestion, { flags, base, settings, fraction }: Draft): LaunchChange[] {
  const at = { engine, flags };
  const changes = settings.map(({ name, to, because }) => changeFlag(at, name, to, because));
  const { memoryFraction } = base.launch;
  if (Math.abs(fraction - memoryFraction) < 1e-9) return changes;
  const moved = (Math.abs(fraction - memoryFraction) * base.prediction.freeBeforeLoadGiB).toFixed(2);
  const where = fraction < memoryFraction ? 'more stay outside the pool' : 'more go to the pool';
  const because = `${Math.abs(fraction - memoryFraction).toFixed(3)} of ${gib(base.prediction.freeBeforeLoadGiB)} GiB: ${moved} GiB ${where}`;
  return [...changes, changeFlag(at, FRACTION[engine], fraction, because)];
}

function explain({ changes, plan, hasRoom }: Option, base: Plan, needs: RoomFor): Found {
  const { low, high } = needs(plan);
  const [was, is] = [base.prediction, plan.prediction];
  const left = `${gib(is.freeAfterGraphsGiB)} GiB are left after graph capture (${gib(was.freeAfterGraphsGiB)} before), and ${gib(low)} to ${gib(high)} are needed`;
  const pool = `the pool then holds ${is.poolTokens} tokens (${was.poolTokens} before)`;
  const caution = hasRoom ? '' : '; the largest prompts may still not fit';
  const numbered = changes.map((change) => ({ ...change, because: `${change.because}${effectOf(change, was, is)}` }));
  return { changes: numbered, because: `${left}; ${pool}${caution}`, predicted: summarise(plan) };
}

/** What a lever frees, from before to after; '' for the fraction, which has said it. */
function effectOf({ name }: LaunchChange, was: Prediction, is: Prediction): string {
  const effects = [
    { of: /running-requests|num-seqs/, what: 'request table', before: was.requestTableGiB, now: is.requestTableGiB },
    { of: /running-requests|num-seqs|graph|eager/, what: 'graphs', before: was.graphsGiB, now: is.graphsGiB },
    { of: /prefill-size/, what: 'one prefill', before: was.prefillNeedGiB.high, now: is.prefillNeedGiB.high },
  ];
  const moved = effects.filter(({ of, before, now }) => of.test(name) && before !== now);
  const said = moved.map(({ what, before, now }) => `${what} ${gib(before)} → ${gib(now)} GiB`);
  return said.length === 0 ? '' : `: ${said.join(', ')}`;
}

const STEP = 0.01;
/** Above it next to nothing is left for anything else. */
const HIGHEST = 0.97;
const LOWEST = 0.05;

/** The one that is there, then down by hundredths. */
export function fractionsDown(from: number): number[] {
  return [from, ...hundredths().filter((one) => one < from - 1e-9 && one >= LOWEST)].filter((one) => one > 0 && one < 1);
}

/** From the least that works up; the one that is there only where it is high enough. */
export function fractionsUp(from: number, least: number): number[] {
  return [...(from >= least ? [from] : []), ...hundredths().filter((one) => one > from + 1e-9 && one >= least - 1e-9)].filter(
    (one) => one > 0 && one <= HIGHEST,
  );
}

function hundredths(): number[] {
  return Array.from({ length: 99 }, (_, at) => Number((0.99 - at * STEP).toFixed(2)));
}
