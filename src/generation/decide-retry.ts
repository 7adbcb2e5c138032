/**
 * What to do after an attempt that did not complete. One pure decision, one retry layer.
 *
 * Whose fault is it? A prompt is blamed only with evidence that the server serves others: a server that is down must
 * never cost a prompt its place (an engine can be killed sixty times in a night), and a poison prompt must never cost
 * the run. So failures count against the prompt only while the server serves others, and losses only once the prompt
 * has been seen in flight at several deaths, the last ones alone.
 */
import type { OutcomeKind } from '../engine/dialect.ts';

/** Times a prompt may fail by itself (5xx, malformed, own deadline) before it is set aside: transient faults rarely repeat thrice. */
export const MOST_OWN_FAILURES = 4;
/** Losses after which a prompt is sent only when no other suspect is in flight, so that a death has one suspect. */
export const LOSSES_UNTIL_SUSPECT = 2;
/** Losses after which it is set aside: two in company, four as the only suspect. Chance kills do not hit one prompt so. */
export const MOST_LOSSES = 6;
/** Different prompts failing one after another, none answered between: then it is the server. */
export const FAILING_PROMPTS_MEAN_SERVER = 5;
/** Refusals of different prompts with no answer ever in this session: the request form is wrong, not the prompts. */
export const REFUSALS_MEAN_FORM = 20;

const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 30_000;

export interface Failure {
  readonly outcome: Exclude<OutcomeKind, 'completed' | 'abandoned'>;
  /** The attempt ended at its own deadline. */
  readonly deadline: boolean;
  readonly because: string;
  readonly retryAfterMs: number;
}

/** What has happened to this turn so far, this failure included. */
export interface TurnHistory {
  readonly ownFailures: number;
  readonly losses: number;
  readonly overloads: number;
}

/** How the server treats others. */
export interface ServerStanding {
  /** Different prompts that failed or were lost since its last completed answer, this one included. */
  readonly failingPrompts: number;
  readonly refusalsInARow: number;
  readonly everCompleted: boolean;
  /** Tokens of the retry budget left (see `retryBudgetLeft`). */
  readonly retryBudgetLeft: number;
}

export type RetryDecision =
  | { readonly kind: 'again'; readonly afterMs: number }
  | { readonly kind: 'set-aside'; readonly because: string }
  | { readonly kind: 'stop'; readonly because: string };

export function decideRetry(
  failure: Failure,
  history: TurnHistory,
  standing: ServerStanding,
  random: () => number,
): RetryDecision {
  switch (failure.outcome) {
    case 'unauthorised':
      return { kind: 'stop', because: failure.because };
    case 'refused':
      if (!standing.everCompleted && standing.refusalsInARow >= REFUSALS_MEAN_FORM) {
        return {
          kind: 'stop',
          because: `${standing.refusalsInARow} prompts in a row were refused and none was ever answered; the last: ${failure.because}`,
        };
      }
      return { kind: 'set-aside', because: `refused: ${failure.because}` };
    case 'overloaded':
      return { kind: 'again', afterMs: Math.max(failure.retryAfterMs, backoff(history.overloads, random)) };
    case 'lost':
      if (!failure.deadline) {
        if (history.losses >= MOST_LOSSES)
          return {
            kind: 'set-aside',
            because: `poison: the server was lost ${history.losses} times with this prompt in flight; the last: ${failure.because}`,
          };
        return { kind: 'again', afterMs: backoff(history.losses, random) };
      }
      return afterOwnFailure(failure, history, standing, random);
    case 'failed':
    case 'malformed':
      return afterOwnFailure(failure, history, standing, random);
  }
}

function afterOwnFailure(failure: Failure, history: TurnHistory, standing: ServerStanding, random: () => number): RetryDecision {
  if (standing.retryBudgetLeft <= 0)
    return {
      kind: 'stop',
      because: `retries are used up (one for every five answers, and 100 to begin with); the last: ${failure.because}`,
    };
  const serverIsToBlame = standing.failingPrompts >= FAILING_PROMPTS_MEAN_SERVER;
  if (!serverIsToBlame && history.ownFailures >= MOST_OWN_FAILURES) {
    return { kind: 'set-aside', because: `poison: failed ${history.ownFailures} times; the last: ${failure.because}` };
  }
  return {
    kind: 'again',
    afterMs: backoff(Math.max(history.ownFailures, serverIsToBlame ? standing.failingPrompts : 0), random),
  };
}

/** Doubling from half a second to half a minute, with half of it random so that a burst does not come back as a burst. */
function backoff(failures: number, random: () => number): number {
  const full = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.max(0, Math.min(failures - 1, 10)));
  return Math.round(full / 2 + (random() * full) / 2);
}

/**
 * Retries that may still be spent on failures: 100 to begin with, and one more for every five answers. A server that
 * fails more than that is sick, and going on would burn GPU hours.
 */
export function retryBudgetLeft(answers: number, retries: number): number {
  return 100 + Math.floor(answers / 5) - retries;
}
