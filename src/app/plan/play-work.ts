/** A whole run in the twin: running requests, queue, tokens a second, hours, money. Pure. */
import { playLoad } from '../../twin/play-load.ts';
import { stepTimeFor, twinServerOf } from '../../twin/server-of-launch.ts';
import type { Candidate, PlanBasis } from './candidate.ts';
import type { PlannedWork } from './workload.ts';

export interface PlayedWork {
  readonly running: number;
  readonly queued: number;
  readonly tokensPerSecond: number;
  readonly hours: number;
  readonly generatedTokens: number;
  readonly retractions: number;
  readonly cacheHitRate: number;
  /** Queue empty at the client's own limit: a larger pool would not help. */
  readonly isClientLimited: boolean;
}

/** Undefined where the launch does not live, or how fast its GPU is is not known. */
export function playWork(
  basis: PlanBasis,
  candidate: Candidate,
  work: PlannedWork,
  most = work.requests.length,
): PlayedWork | undefined {
  const { launch, prediction, steady } = candidate;
  const stepTime = stepTimeFor(basis.shape, basis.gpu, launch, basis.measured);
  if (steady === undefined || stepTime === undefined) return undefined;
  const requests = work.requests.slice(0, most);
  const inFlight = Math.min(basis.load.inFlight, requests.length);
  const played = playLoad(twinServerOf(launch, prediction, stepTime), { requests, arrivals: { kind: 'closed', inFlight } });
  const { running, queued, tokensPerSecond, retractions, cacheHitRate } = played.steady ?? played.whole;
  // The rest of a run that is longer than the sample goes at the settled pace.
  const generatedTokens = (played.generatedTokens / requests.length) * work.count;
  const rest = generatedTokens - played.generatedTokens;
  const hours = (played.seconds + (tokensPerSecond > 0 ? rest / tokensPerSecond : 0)) / 3600;
  return {
    running,
    queued,
    tokensPerSecond,
    hours,
    generatedTokens,
    retractions,
    cacheHitRate,
    isClientLimited: played.isClientLimited,
  };
}
