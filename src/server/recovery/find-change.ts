/**
 * Which change a cause asks for. Pure; one table of causes, one function each.
 * Too small a fraction at the start and too large a one later want opposite changes: the cause says which it is.
 */
import { changeFlag, flagValue } from './changes.ts';
import { shrinkHostCache } from './host-memory.ts';
import { judgeCandidate } from './judge-candidate.ts';
import type { Predict } from './predict-candidate.ts';
import type { RecoveryQuestion } from './recovery.ts';
import { fractionOf, lowerByThumb } from './rules-of-thumb.ts';
import { fractionsDown, type Outcome, searchMemory } from './search-memory.ts';
import { raiseFraction } from './start-memory.ts';
import { takeVerdictRemedy } from './verdict-remedy.ts';

type Remedy = (question: RecoveryQuestion, predict: Predict) => Outcome;

const NOTHING: Outcome = { found: undefined, passedOver: [] };

/** Causes that are not here have the remedy that their verdict names. */
const REMEDIES: Readonly<Record<string, Remedy>> = {
  'weights-exceed-static-fraction': raiseFraction,
  'kv-pool-full-single-request': raiseFraction,
  'max-model-len-exceeds-kv-capacity': fitContext,
  'runtime-oom-activation': lowerMemory,
  'cuda-graph-capture-oom': lowerMemory,
  'attention-workspace-oom': lowerMemory,
  'req-to-token-table-oom': lowerMemory,
  'kv-pool-allocation-oom': lowerMemory,
  'gpu-out-of-memory': (question, predict) =>
    question.tries.at(-1)?.wasReady === true ? lowerMemory(question, predict) : NOTHING,
  'unified-memory-exhausted': lowerByTenth,
  'rl-resume-memory-oom': lowerByTenth,
  'profiling-oom': firstOf(takeVerdictRemedy, lowerMemory),
  'prefill-pool-exhausted': firstOf(takeVerdictRemedy, lowerMemory),
  'mamba-blocks-below-max-num-seqs': firstOf(takeVerdictRemedy, lowerMemory),
  'hicache-host-memory': shrinkHostCache,
  'host-ram-oom-kill': shrinkHostCache,
  'host-memory-exhausted': shrinkHostCache,
  'pinned-memory-limit': shrinkHostCache,
};

export function findChange(question: RecoveryQuestion, predict: Predict): Outcome {
  const cause = question.tries.at(-1)?.verdict.cause ?? '';
  const remedy = Object.hasOwn(REMEDIES, cause) ? REMEDIES[cause] : undefined;
  return (remedy ?? takeVerdictRemedy)(question, predict);
}

/** The first that finds something; what all of them passed over is told. */
function firstOf(...remedies: readonly Remedy[]): Remedy {
  return (question, predict) => {
    const passedOver: string[] = [];
    for (const remedy of remedies) {
      const outcome = remedy(question, predict);
      passedOver.push(...outcome.passedOver);
      if (outcome.found !== undefined) return { found: outcome.found, passedOver };
    }
    return { found: undefined, passedOver };
  };
}

/** More room beside the pool: by the arithmetic, or by rules of thumb where it cannot say. */
function lowerMemory(question: RecoveryQuestion, predict: Predict): Outcome {
  const last = question.tries.at(-1);
  const from = (last === undefined ? undefined : predict(last.flags)?.launch.memoryFraction) ?? fractionOf(question);
  // vLLM's caps and batches change its pool too; there the fewest levers that do come first.
  const first = question.engine === 'sglang' ? 'pool' : 'levers';
  const searched = from === undefined ? undefined : searchMemory(question, predict, { fractions: fractionsDown(from), first });
  return searched ?? lowerByThumb(question);
}

/** Memory that is lent to a trainer, or that the host needs too: no arithmetic knows how much, and a tenth is what the verdicts say. */
const TENTH = 0.1;
const LEAST_FRACTION = 0.3;

function lowerByTenth(question: RecoveryQuestion, predict: Predict): Outcome {
  const last = question.tries.at(-1);
  const fraction = fractionOf(question) ?? (last === undefined ? undefined : predict(last.flags)?.launch.memoryFraction);
  if (last === undefined || fraction === undefined || fraction <= LEAST_FRACTION) return takeVerdictRemedy(question, predict);
  const to = Number(Math.max(LEAST_FRACTION, fraction - TENTH).toFixed(2));
  const value = { ...last.verdict.remedy, value: String(to) };
  const tries = [...question.tries.slice(0, -1), { ...last, verdict: { ...last.verdict, remedy: value } }];
  return takeVerdictRemedy({ ...question, tries }, predict);
}

/** vLLM refuses a context that one request could not use: shorten it where the run's longest request allows, else make room. */
function fitContext(question: RecoveryQuestion, predict: Predict): Outcome {
  const last = question.tries.at(-1);
  const longest = question.limits?.longestRequestTokens;
  const value = Number(last?.verdict.remedy.value);
  if (last === undefined || !Number.isSafeInteger(value) || value <= 0) return raiseFraction(question, predict);
  if (longest !== undefined && longest > value) {
    const { found, passedOver } = raiseFraction(question, predict);
    return { found, passedOver: [`max-model-len ${value}: the run's longest request has ${longest} tokens`, ...passedOver] };
  }
  return longest === undefined
    ? firstOf(raiseFraction, shortenContext)(question, predict)
    : firstOf(shortenContext, raiseFraction)(question, predict);
}

function shortenContext(question: RecoveryQuestion, predict: Predict): Outcome {
  const last = question.tries.at(-1);
  if (last === undefined) return NOTHING;
  const value = Number(last.verdict.remedy.value);
  const written = flagValue(question.engine, last.flags, 'max-model-len');
  const because = `the engine says that ${value} tokens are the longest that its cache holds`;
  const changes = [changeFlag({ engine: question.engine, flags: last.flags }, 'max-model-len', value, because)];
  const { refusal } = judgeCandidate(question, changes, predict);
  if (refusal !== '') return { found: undefined, passedOver: [`max-model-len ${String(written ?? '')} → ${value}: ${refusal}`] };
  return { found: { changes, because, predicted: undefined }, passedOver: [] };
}
