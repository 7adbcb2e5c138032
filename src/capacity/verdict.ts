/** Will it start, live, and hold enough? Pure: figures → verdict, reason, and what is close to the edge. */
import type { Interval, PlanVerdict } from './prediction.ts';

export interface Judged {
  readonly verdict: PlanVerdict;
  readonly because: string;
  readonly cautions: readonly string[];
}

export interface VerdictInput {
  readonly refusals: readonly string[];
  /** Why the engine would not start for lack of memory, with numbers; '' where it starts. */
  readonly noPool: string;
  readonly freeAfterGraphs: Interval;
  readonly need: Interval;
  readonly poolTokens: number;
  readonly neededTokens: number;
}

export function judgePlan(input: VerdictInput): Judged {
  const { refusals, noPool, freeAfterGraphs, need, poolTokens, neededTokens } = input;
  const free = (freeAfterGraphs.low + freeAfterGraphs.high) / 2;
  const spread = (freeAfterGraphs.high - freeAfterGraphs.low) / 2;
  const say = (verdict: PlanVerdict, because: string, cautions: readonly string[] = []): Judged => ({
    verdict,
    because,
    cautions,
  });
  const [refusal] = refusals;
  if (refusal !== undefined) return say('refuses-to-start', refusal, refusals.slice(1));
  if (noPool !== '') return say('refuses-to-start', noPool);
  if (free < 0)
    return say('refuses-to-start', `graph capture needs ${gib(-free)} GiB more than is left beside the pool`, unsure(spread));
  // vLLM measures its largest step and sets it aside within the budget.
  const needs =
    need.high === 0
      ? 'the largest step has its memory inside the budget'
      : `one full prefill chunk needs ${gib(need.low)} to ${gib(need.high)} GiB`;
  if (free < need.low)
    return say('dies-under-load', `${gib(free)} GiB are left after graph capture, and ${needs}`, unsure(spread));
  if (poolTokens < neededTokens)
    return say('too-small', `the pool holds ${poolTokens} tokens, and ${neededTokens} are needed at once`);
  const cautions: string[] = [];
  if (free < need.high)
    cautions.push(`${gib(free)} GiB are left after graph capture, and ${needs}: the largest prompts may not fit`);
  else if (freeAfterGraphs.low < need.low)
    cautions.push(`the ${gib(free)} GiB left after graph capture may be ${gib(spread)} GiB less: ${needs}`);
  return say('fits', `${gib(free)} GiB are left after graph capture, and ${needs}`, cautions);
}

function unsure(spread: number): string[] {
  return spread > 0.5 ? [`the memory left after graph capture is known to ${gib(spread)} GiB only; one launch would tell`] : [];
}

export function gib(value: number): string {
  return value.toFixed(2);
}
