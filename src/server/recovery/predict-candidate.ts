/**
 * What the arithmetic says of a launch, with the figures that the dead ones left. Pure.
 * Promises: measured figures replace guesses; figures that contradict each other are left out, those of others first, and
 * never thrown. Undefined = nobody can say.
 */
import { type MeasuredLaunch, type Plan, planLaunch } from '../../capacity/plan-launch.ts';
import { readFacts } from '../../capacity/read-facts.ts';
import { plainFactsOf } from '../../diagnosis/measured-figures.ts';
import { launchKey, parseGiven } from './changes.ts';
import type { Flags, LaunchTry, PredictedLaunch, RecoveryQuestion } from './recovery.ts';

export type Predict = (flags: Flags) => Plan | undefined;

export function predictor(question: RecoveryQuestion): Predict {
  const { engine, version, basis, limits } = question;
  if (basis === undefined) return () => undefined;
  const longestRequestTokens = limits?.longestRequestTokens;
  const plan = (flags: Flags, observations: readonly MeasuredLaunch[]) =>
    planLaunch({
      engine,
      version,
      shape: basis.shape,
      gpu: basis.gpu,
      flags: parseGiven(engine, flags),
      observations,
      ...(longestRequestTokens === undefined ? {} : { longestRequestTokens }),
    });
  const own = question.tries.slice(-1).flatMap((one) => measure(question, one));
  // Whatever cannot be of one machine is not believed: a foreign process, another GPU, a log that was cut.
  const choices = [[...own, ...basis.observations], own, basis.observations, []];
  const tryAll = (flags: Flags): Plan | undefined => {
    for (const observations of choices) {
      try {
        return plan(flags, observations);
      } catch {
        // The next choice says less and contradicts less.
      }
    }
    return undefined;
  };
  // The launch that ended is asked about with every candidate.
  const known = new Map<string, Plan | undefined>();
  return (flags) => {
    const key = launchKey(engine, flags, {});
    if (!known.has(key)) known.set(key, tryAll(flags));
    return known.get(key);
  };
}

function measure({ engine }: RecoveryQuestion, { flags, verdict }: LaunchTry): MeasuredLaunch[] {
  const figures = plainFactsOf(verdict.facts);
  if (Object.keys(figures).length === 0) return [];
  return [{ facts: readFacts(figures).facts, flags: parseGiven(engine, flags), source: 'the log of the launch that ended' }];
}

export function summarise({ prediction }: Plan): PredictedLaunch {
  const { poolTokens, freeAfterGraphsGiB, prefillNeedGiB } = prediction;
  return { poolTokens, freeAfterGraphsGiB, prefillNeedGiB: prefillNeedGiB.high };
}
