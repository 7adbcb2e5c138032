/**
 * What to do after an attempt that did not complete. One pure decision, one retry layer.
 *
 * Whose fault is it? A prompt is blamed only with evidence that the server serves others: a server that is down must
 * never cost a prompt its place (an engine can be killed sixty times in a night), and a poison prompt must never cost
 * the run. So a failure counts against the prompt only when the server has answered something else since the prompt's
 * failure before, and a loss only when the prompt was the one suspect in flight. Where nothing else is there to be
 * answered, a trial question gives the evidence (`needsProof`, `trial.ts`). A server that answers nobody for longer
 * than the run's patience ends the run, resumable.
 */
import { type AsideReason, isContextReason } from '../base/aside-reason.ts';
import type { ContextRefusal } from '../engine/context-refusal.ts';
import type { OutcomeKind, RefusedReason } from '../engine/dialect.ts';

/** Times a prompt may fail by itself (5xx, malformed, own deadline) before it is set aside: transient faults rarely repeat thrice. */
export const MOST_BLAMED_FAILURES = 4;
/** Losses after which a prompt is sent only when no other suspect is in flight, so that a death has one suspect. */
export const LOSSES_UNTIL_SUSPECT = 2;
/** Losses as the only suspect after which it is set aside, unless the server dies as often without it. */
export const MOST_BLAMED_LOSSES = 4;
/** … and after which it is set aside all the same: several poison prompts must not excuse each other for ever. */
export const MOST_BLAMED_LOSSES_OF_ALL = 6;
/** Failures and losses of one prompt after which the server must have answered something else before it is sent again. */
export const TROUBLES_UNTIL_PROOF = 2;
/** Refusals in a row after which it may be the server: one trial question tells. */
export const REFUSALS_UNTIL_PROOF = 20;
/** Times that a server turns requests away (401, 403, 404, 405), looked at in between, until it is sure: a proxy that is restarted says so for a second or two. */
export const REJECTIONS_UNTIL_SURE = 3;

const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 30_000;
/** A server may ask for more; it is asked again all the same, so that a wrong clock over there does not stop a night here. */
const LONGEST_RETRY_AFTER_MS = 600_000;

export interface Failure {
  readonly outcome: Exclude<OutcomeKind, 'completed' | 'abandoned'>;
  /** The attempt ended at its own deadline. */
  readonly deadline: boolean;
  /** Of a refusal, where the server's words tell. */
  readonly reason?: RefusedReason | undefined;
  readonly because: string;
  readonly retryAfterMs: number;
}

/** What has happened to this turn so far, this failure included. */
export interface TurnHistory {
  /** 5xx, malformed, own deadline; and those of them with the server answering others in between. */
  readonly failures: number;
  readonly blamedFailures: number;
  /** No answer at all; and those of them as the only suspect. */
  readonly losses: number;
  readonly blamedLosses: number;
  /** Times the server was lost since this turn's first loss, with this turn not in flight. */
  readonly deathsWithout: number;
  readonly refusals: number;
  /** Turned away; and those of them with the server answering others in between. */
  readonly rejections: number;
  readonly blamedRejections: number;
  readonly overloads: number;
}

/** How the servers treat others. */
export interface ServerStanding {
  readonly everCompleted: boolean;
  readonly refusalsInARow: number;
  readonly rejectionsInARow: number;
  /** For how long nobody has been answered, and how long that may be. */
  readonly quietMs: number;
  readonly patienceMs: number;
  readonly isWorking: boolean;
  readonly retryBudgetLeft: number;
}

export type RetryDecision =
  | { readonly kind: 'again'; readonly afterMs: number }
  | { readonly kind: 'set-aside'; readonly reason: AsideReason; readonly because: string }
  | { readonly kind: 'stop'; readonly code: 'server.rejects' | 'server.gave-up'; readonly because: string };

export function decideRetry(
  failure: Failure,
  history: TurnHistory,
  standing: ServerStanding,
  random: () => number,
): RetryDecision {
  switch (failure.outcome) {
    case 'unauthorised':
      return afterRejection(failure, history, standing, random);
    case 'refused':
      return afterRefusal(failure, history, standing, random);
    case 'overloaded':
      if (isGivenUp(failure, standing)) return gaveUp(failure, standing);
      return {
        kind: 'again',
        afterMs: Math.max(Math.min(failure.retryAfterMs, LONGEST_RETRY_AFTER_MS), backoff(history.overloads, random)),
      };
    case 'lost':
      return failure.deadline ? afterOwnFailure(failure, history, standing, random) : afterLoss(failure, history, random);
    case 'failed':
    case 'malformed':
      return afterOwnFailure(failure, history, standing, random);
  }
}

/** Before the next attempt of a turn in trouble: has the server answered anything since? If not, a trial question first. */
export function needsProof(history: TurnHistory, answeredSince: boolean): boolean {
  return (
    !answeredSince && (history.refusals + history.rejections > 0 || history.failures + history.losses >= TROUBLES_UNTIL_PROOF)
  );
}

/** After a trial question that was not answered: the server is to blame, and no prompt. */
export function decideAfterTrial(
  failure: Failure,
  trials: number,
  standing: ServerStanding,
  random: () => number,
): Exclude<RetryDecision, { kind: 'set-aside' }> {
  const isSure = failure.outcome === 'unauthorised' && standing.rejectionsInARow >= REJECTIONS_UNTIL_SURE;
  if (failure.outcome === 'refused' || isSure) {
    return { kind: 'stop', code: 'server.rejects', because: `even a plain question is refused: ${failure.because}` };
  }
  if (isGivenUp(failure, standing)) return gaveUp(failure, standing);
  return again(trials, random);
}

/** A server that turns this prompt away and answers others (a filter before it) is right about the others. */
function afterRejection(
  { because }: Failure,
  history: TurnHistory,
  standing: ServerStanding,
  random: () => number,
): RetryDecision {
  if (history.blamedRejections >= MOST_BLAMED_FAILURES) return { kind: 'set-aside', reason: 'refused', because };
  if (standing.rejectionsInARow >= REJECTIONS_UNTIL_SURE) return { kind: 'stop', code: 'server.rejects', because };
  return again(history.rejections, random);
}

/** A turn whose lengths are known to be too large, by the server's refusal or before it was sent. */
export function afterLength({ reason, because }: ContextRefusal): RetryDecision {
  if (reason === 'max-tokens-too-large') return { kind: 'stop', code: 'server.rejects', because };
  return { kind: 'set-aside', reason, because };
}

/** Lengths speak for themselves; for any other refusal, the server must serve others. */
function afterRefusal(
  { reason, because }: Failure,
  history: TurnHistory,
  standing: ServerStanding,
  random: () => number,
): RetryDecision {
  if (reason === 'max-tokens-too-large' || isContextReason(reason)) return afterLength({ reason, because });
  if (!standing.everCompleted || standing.refusalsInARow >= REFUSALS_UNTIL_PROOF) return again(history.refusals, random);
  return { kind: 'set-aside', reason: reason ?? 'refused', because };
}

function afterLoss(failure: Failure, history: TurnHistory, random: () => number): RetryDecision {
  const { losses, blamedLosses, deathsWithout } = history;
  const isLikely = blamedLosses >= MOST_BLAMED_LOSSES && blamedLosses > deathsWithout;
  if (isLikely || blamedLosses >= MOST_BLAMED_LOSSES_OF_ALL) {
    return {
      kind: 'set-aside',
      reason: 'poison-kills',
      because: `the server was lost ${losses} times with this prompt in flight; the last: ${failure.because}`,
    };
  }
  // The wait for a server that is away, and the trial question, come on top: no need to double up to half a minute.
  return again(Math.min(losses, LOSSES_UNTIL_SUSPECT), random);
}

function afterOwnFailure(failure: Failure, history: TurnHistory, standing: ServerStanding, random: () => number): RetryDecision {
  if (history.blamedFailures >= MOST_BLAMED_FAILURES) {
    return {
      kind: 'set-aside',
      reason: 'poison-fails',
      because: `failed ${history.blamedFailures} times while others were answered; the last: ${failure.because}`,
    };
  }
  if (standing.retryBudgetLeft <= 0) {
    return {
      kind: 'stop',
      code: 'server.gave-up',
      because: `retries are used up (one for every five answers, and 100 to begin with); the last: ${failure.because}`,
    };
  }
  return again(history.failures, random);
}

/** A server that says "later" because it works on long answers is not away; one that hangs meets the deadline of its requests. */
function isGivenUp({ outcome }: Failure, { isWorking, quietMs, patienceMs }: ServerStanding): boolean {
  return quietMs > patienceMs && !(outcome === 'overloaded' && isWorking);
}

function gaveUp(failure: Failure, { quietMs }: ServerStanding): RetryDecision & { readonly kind: 'stop' } {
  return {
    kind: 'stop',
    code: 'server.gave-up',
    because: `nothing was answered for ${Math.round(quietMs / 1000)} s; the last: ${failure.because}`,
  };
}

function again(times: number, random: () => number): RetryDecision & { readonly kind: 'again' } {
  return { kind: 'again', afterMs: backoff(times, random) };
}

/** Doubling from half a second to half a minute, with half of it random so that a burst does not come back as a burst. */
function backoff(times: number, random: () => number): number {
  const full = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.max(0, Math.min(times - 1, 10)));
  return Math.round(full / 2 + (random() * full) / 2);
}

/**
 * Retries that may still be spent on failures while others are answered: 100 to begin with, and one more for every five
 * answers. A server that fails more of its requests than that is sick, and going on would burn GPU hours.
 */
export function retryBudgetLeft(answers: number, retries: number): number {
  return 100 + Math.floor(answers / 5) - retries;
}
