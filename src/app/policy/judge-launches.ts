/**
 * Which recorded launches break a rule that came after them. Pure. A launch is judged by what the ledger knows of it, exactly
 * as it was when it was admitted (`servers/admit-launch.ts`).
 */
import type { ServerFacts } from '../../engine/dialect.ts';
import type { LaunchRow, RecordedLaunch } from '../../ledger/ledger.ts';
import { checkPolicy, isBroken, type LaunchClass } from '../../spec/policy.ts';
import type { PolicyRule } from '../../spec/run.ts';

/** What a server says of itself, 0 being what it does not say. */
export function classOfFacts({ kvCacheDtype, contextTokens, poolTokens, sequences }: ServerFacts): LaunchClass {
  const figures = {
    ...(contextTokens > 0 ? { contextTokens } : {}),
    ...(poolTokens > 0 ? { poolTokens } : {}),
    ...(sequences > 0 ? { runningRequests: sequences } : {}),
  };
  return { kvCacheDtype, figures };
}

/** `detail.class` is what was found out beyond the server's own facts; what nobody wrote is not known. */
export function classOfLaunch({ kvCacheDtype, detail }: LaunchRow): LaunchClass {
  const { facts, class: found } = JSON.parse(detail) as { facts?: ServerFacts; class?: Partial<LaunchClass> }; // our own words
  const told = facts === undefined ? { kvCacheDtype } : classOfFacts({ ...facts, kvCacheDtype });
  return { ...told, ...found, figures: { ...told.figures, ...found?.figures } };
}

export interface BrokenLaunch {
  readonly launch: RecordedLaunch;
  readonly because: string;
}

/** The launches that break a rule; what is withdrawn already is left out. */
export function findBroken(rule: PolicyRule, launches: readonly RecordedLaunch[]): readonly BrokenLaunch[] {
  return launches.flatMap((launch) => {
    if (launch.isWithdrawn) return [];
    const broken = checkPolicy([rule], classOfLaunch(launch)).find(isBroken);
    return broken === undefined ? [] : [{ launch, because: broken.because }];
  });
}
