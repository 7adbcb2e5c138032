/** The weights leave too little for the pool, or one request does not fit it: the fraction must go up, not down. Pure. */
import { gib } from '../../capacity/verdict.ts';
import { changeFlag } from './changes.ts';
import { FRACTION, judgeCandidate } from './judge-candidate.ts';
import type { Predict } from './predict-candidate.ts';
import type { LaunchTry, RecoveryQuestion } from './recovery.ts';
import { fractionOf } from './rules-of-thumb.ts';
import { fractionsUp, type Outcome, searchMemory } from './search-memory.ts';

/** Beyond what the weights alone need, so that some pool is left: the field's rule. */
const MARGIN = 0.02;
const HIGHEST = 0.97;

/** `least`: the printed minimum or 1 − F1 ÷ F0, with the margin; a fraction that is there and higher was not enough either. */
export function raiseFraction(question: RecoveryQuestion, predict: Predict): Outcome {
  const last = question.tries.at(-1);
  if (last === undefined) return { found: undefined, passedOver: [] };
  const from = predict(last.flags)?.launch.memoryFraction ?? fractionOf(question);
  const least = leastFraction(last) ?? (from === undefined ? undefined : from + MARGIN);
  if (from === undefined || least === undefined)
    return { found: undefined, passedOver: ['nothing says what the memory fraction is, nor what the weights need'] };
  const fractions = fractionsUp(from, Math.max(least, from + 0.001));
  if (fractions.length === 0)
    return {
      found: undefined,
      passedOver: [`the fraction would have to be ${least.toFixed(3)} or more, and above ${HIGHEST} nothing is left for a batch`],
    };
  return (
    searchMemory(question, predict, { fractions, first: 'levers', mustGrow: true }) ??
    raiseByThumb(question, last, fractions.at(-1) ?? least)
  );
}

function raiseByThumb(question: RecoveryQuestion, last: LaunchTry, to: number): Outcome {
  const { engine } = question;
  const because = `the weights alone need ${(to - MARGIN).toFixed(2)} of the memory, and some pool must be left`;
  const changes = [changeFlag({ engine, flags: last.flags }, FRACTION[engine], to, because)];
  const { refusal } = judgeCandidate(question, changes, () => undefined);
  if (refusal !== '') return { found: undefined, passedOver: [`${FRACTION[engine]} ${to}: ${refusal}`] };
  return { found: { changes, because, predicted: undefined }, passedOver: [] };
}

/** The printed minimum (the verdict's value has the margin), else from what was free before and after the weights. */
function leastFraction({ verdict }: LaunchTry): number | undefined {
  const { facts, remedy } = verdict;
  const { freeBeforeLoadGiB: before, freeAfterLoadGiB: after } = facts;
  const value = Number(remedy.value);
  const printed = value > 0 && value < 1 ? value : undefined;
  if (before === undefined || after === undefined || before <= 0) return printed;
  return Math.max(1 - after / before + MARGIN, printed ?? 0);
}

/** Below what was seen before by more than this: somebody else is on the GPU. The field's rule. */
const FOREIGN_GIB = 1;

/** Free memory before the weights is less than at other launches: no flag brings it back. '' where it is not, or nobody knows. */
export function describeForeignMemory({ tries, basis }: RecoveryQuestion): string {
  const now = tries.at(-1)?.verdict.facts.freeBeforeLoadGiB;
  if (now === undefined) return '';
  const seen = [
    ...tries.slice(0, -1).map(({ verdict }) => verdict.facts.freeBeforeLoadGiB),
    ...(basis?.observations ?? []).map(({ facts }) => facts.freeBeforeLoadGiB?.value),
  ].filter((free) => free !== undefined);
  const most = Math.max(0, ...seen);
  if (now >= most - FOREIGN_GIB) return '';
  return `${gib(now)} GiB were free before the weights, and ${gib(most)} at an earlier launch: something else holds ${gib(most - now)} GiB of the GPU`;
}
