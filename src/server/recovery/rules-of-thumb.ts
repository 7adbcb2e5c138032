/**
 * Memory ran out, and nothing is known of the model: the field's rules, one step at a time, by what the log itself says. Pure.
 * Promise: each step frees what the log shows to be missing where it shows that, and else a little more than the last.
 */
import { gib } from '../../capacity/verdict.ts';
import { changeFlag, flagValue } from './changes.ts';
import { FRACTION, judgeCandidate } from './judge-candidate.ts';
import { memoryLevers } from './memory-levers.ts';
import { shortageOf } from './needed-room.ts';
import type { LaunchChange, RecoveryQuestion } from './recovery.ts';
import type { Outcome } from './search-memory.ts';

const GIB = 2 ** 30;
/** What one prefill of 8,192 tokens needs on a large mixture of experts: 1.5 to 2.5 GiB. */
const PREFILL_GIB = 2.5;
const PREFILL_TOKENS = 8192;
/** Where the log does not say what is missing: 0.04 of 94 GiB is a whole prefill and a half. */
const USUAL_STEP = 0.04;
const CAP = 256;
const LOWEST = 0.05;

/** Less outside the pool: a cap, then a lower fraction, then what else there is. */
export function lowerByThumb(question: RecoveryQuestion): Outcome {
  const last = question.tries.at(-1);
  if (last === undefined) return { found: undefined, passedOver: [] };
  const at = { engine: question.engine, flags: last.flags };
  const levers = memoryLevers(question, last.flags)
    .filter((settings) => settings.length > 0)
    .map((settings) => settings.map(({ name, to, because }) => changeFlag(at, name, to, because)));
  const missing = missingGiB(question);
  const fraction = lowerFraction(question, missing);
  const isEnough = missing === undefined ? () => true : isEnoughTable(missing, tableGiB(question));
  const first = levers.slice(0, 1).filter((changes) => isUntouched(question, changes) && isEnough(changes));
  return firstAllowed(question, [...first, ...(fraction === undefined ? [] : [[fraction]]), ...levers], missing);
}

/** No earlier step has turned these levers: each is turned once before the fraction. */
function isUntouched({ engine, tries }: RecoveryQuestion, changes: readonly LaunchChange[]): boolean {
  const first = tries[0]?.flags ?? {};
  return changes.every(({ name, from }) => flagValue(engine, first, name) === from);
}

/** The table of requests alone frees what is missing. */
function isEnoughTable(missing: number, freed: number): (changes: readonly LaunchChange[]) => boolean {
  return (changes) => changes.length === 1 && changes[0]?.name === 'max-running-requests' && freed >= missing;
}

function firstAllowed(
  question: RecoveryQuestion,
  candidates: readonly (readonly LaunchChange[])[],
  missing: number | undefined,
): Outcome {
  const passedOver: string[] = [];
  for (const changes of candidates) {
    const { refusal } = judgeCandidate(question, changes, () => undefined);
    if (refusal === '') {
      const because =
        missing === undefined
          ? 'the log does not say how much was missing: the next of the small levers'
          : `about ${gib(missing)} GiB were missing`;
      return {
        found: {
          changes,
          because: `${because}; nothing is known of this model’s memory, so this is a rule of thumb`,
          predicted: undefined,
        },
        passedOver,
      };
    }
    passedOver.push(`${changes.map(({ name, to }) => `${name} ${String(to)}`).join(', ')}: ${refusal}`);
  }
  return { found: undefined, passedOver };
}

/** What the log shows to be missing; undefined where it does not. */
function missingGiB({ tries }: RecoveryQuestion): number | undefined {
  const last = tries.at(-1);
  if (last === undefined) return undefined;
  const { freeAfterGraphsGiB: left, chunkedPrefill } = last.verdict.facts;
  const short = shortageOf(last);
  if (!last.wasReady) return short === undefined ? undefined : short + 1; // the field's rule at capture: the shortfall and one more
  const need =
    (PREFILL_GIB * (chunkedPrefill !== undefined && chunkedPrefill > 0 ? chunkedPrefill : PREFILL_TOKENS)) / PREFILL_TOKENS;
  if (left !== undefined && left < need) return Math.max(need - left, short ?? 0);
  return short;
}

/** SGLang's table of requests: (N − 256) × (context + 4) × 4 bytes. */
function tableGiB({ engine, tries }: RecoveryQuestion): number {
  const { maxRunningRequests: running, contextTokens: context } = tries.at(-1)?.verdict.facts ?? {};
  if (engine !== 'sglang' || running === undefined || context === undefined) return 0;
  return (Math.max(0, running - CAP) * (context + 4) * 4) / GIB;
}

function lowerFraction(question: RecoveryQuestion, missing: number | undefined): LaunchChange | undefined {
  const { engine, tries } = question;
  const last = tries.at(-1);
  const fraction = last === undefined ? undefined : fractionOf(question);
  if (last === undefined || fraction === undefined) return undefined;
  const before = last.verdict.facts.freeBeforeLoadGiB;
  const step =
    missing === undefined || before === undefined ? USUAL_STEP : Math.max(0.01, Math.ceil((missing / before) * 100) / 100);
  const to = Number(Math.max(LOWEST, fraction - step).toFixed(2));
  if (to >= fraction) return undefined;
  const because =
    missing === undefined || before === undefined
      ? `${USUAL_STEP} less, the usual step where the log does not say what is missing`
      : `${gib(missing)} of ${gib(before)} GiB are missing: ${step.toFixed(2)} less`;
  return changeFlag({ engine, flags: last.flags }, FRACTION[engine], to, because);
}

/** As written, else as the log shows it. */
export function fractionOf({ engine, tries }: RecoveryQuestion): number | undefined {
  const last = tries.at(-1);
  if (last === undefined) return undefined;
  const { arguments: printed } = last.verdict.facts;
  const written = flagValue(engine, last.flags, FRACTION[engine]) ?? printed[FRACTION[engine].replaceAll('-', '_')];
  const value = Number(written);
  return value > 0 && value < 1 ? value : undefined;
}
