/**
 * One turn until it is answered, set aside, or left for the next worker.
 *
 *   suspects one at a time → slot → server → trial question if needed → attempt → answered
 *                                                                       └→ not: give the slot back, decide, wait, again
 *
 * A slot is never held while waiting for another suspect or for a backoff, so trouble takes no room from others.
 */

import type { Message } from '../base/conversation.ts';
import { AerieError } from '../base/errors.ts';
import { turnSeed } from '../base/ids.ts';
import { Parcel } from '../base/parcel.ts';
import type { Outcome, TurnRequest } from '../engine/dialect.ts';
import type { Lease, PromptKey } from '../ledger/ledger.ts';
import type { Endpoint } from '../server/endpoint.ts';
import type { RecordTurn } from '../shard/record.ts';
import type { RunSpec } from '../spec/run.ts';
import { attempt, becauseOf } from './attempt.ts';
import { makeTurn } from './conversation.ts';
import type { Conversing } from './conversing.ts';
import { decideAfterTrial, decideRetry, type Failure, needsProof, type RetryDecision, retryBudgetLeft } from './decide-retry.ts';
import type { Slot } from './gate.ts';
import type { PromptSettings } from './prompt-settings.ts';
import { Trouble } from './trouble.ts';

export interface TurnToAnswer {
  readonly key: PromptKey & Pick<Lease, 'round'>;
  /** What is asked: everything said before, and the user's message or the tool results. */
  readonly messages: readonly Message[];
  readonly tools: readonly string[];
  readonly settings: PromptSettings;
  /** The turns before this one, and prompt + output ids of the last. */
  readonly turns: readonly RecordTurn[];
  readonly before: readonly number[];
  readonly slot: Slot;
}

export interface Answered {
  readonly kind: 'answered';
  readonly turn: Parcel<RecordTurn>;
  readonly endpoint: Endpoint;
}
/** `left`: drained, given up or stopped; the lease is left for the next worker. */
export type TurnEnd = Answered | { readonly kind: 'set-aside'; readonly because: string } | { readonly kind: 'left' };
type Step = Answered | RetryDecision | { readonly kind: 'left' };

const LEFT = { kind: 'left' } as const;

export async function answerTurn(asked: TurnToAnswer, context: Conversing): Promise<TurnEnd> {
  const { suspects, clock, drain, stop } = context;
  const trouble = new Trouble();
  for (;;) {
    const { isSuspect } = trouble;
    if (isSuspect) await suspects.enter(false);
    let step: Step;
    try {
      step = await tryOnce(asked, trouble, context);
    } finally {
      if (isSuspect) suspects.leave();
    }
    switch (step.kind) {
      case 'answered':
      case 'set-aside':
      case 'left':
        return step;
      case 'stop':
        stop(stopError(step.code, step.because));
        return LEFT;
      case 'again':
        await clock.sleep(step.afterMs, drain);
    }
  }
}

async function tryOnce(asked: TurnToAnswer, trouble: Trouble, context: Conversing): Promise<Step> {
  const { run, fleet, drain, random } = context;
  const { key, turns, before, slot } = asked;
  await slot.take();
  if (drain.aborted) return LEFT;
  const endpoint = await fleet.choose(drain);
  if (endpoint === undefined) return LEFT;
  const answeredSince = fleet.answersOf(endpoint.server) > trouble.answersSeen(endpoint.server);
  if (needsProof(trouble.history(fleet.deaths), answeredSince)) {
    const unproved = await askTrial(endpoint, trouble, context);
    if (unproved !== undefined) return giveBack(slot, unproved);
  }
  const request = requestOf(asked, endpoint, run);
  const { outcome, sending } = await attempt({ ...key, turn: turns.length }, endpoint, request, context);
  if (outcome.kind === 'completed') {
    const turn = makeTurn(outcome.reply.take(), before, request.seed, endpoint.server);
    return { kind: 'answered', turn: new Parcel(turn), endpoint };
  }
  slot.leave();
  if (outcome.kind === 'abandoned') return LEFT;
  const failure = failureOf(outcome);
  const isOwn = trouble.note(failure, sending, fleet);
  if (isOwn) context.tally.retried();
  return decideRetry(failure, trouble.history(fleet.deaths), standingOf(endpoint, context), random);
}

function requestOf({ key, settings, messages, tools, turns }: TurnToAnswer, { facts }: Endpoint, run: RunSpec): TurnRequest {
  return {
    model: facts.model === '' ? run.model : facts.model,
    ...{ messages, tools, ...settings },
    seed: turnSeed(settings.sampling.seed, key.id, turns.length, key.round),
  };
}

function giveBack(slot: Slot, step: Step): Step {
  slot.leave();
  return step;
}

/** undefined: the server answers others. */
async function askTrial(endpoint: Endpoint, trouble: Trouble, context: Conversing): Promise<Step | undefined> {
  const outcome = await context.trials.ask(endpoint);
  if (outcome.kind === 'abandoned' || context.drain.aborted) return LEFT;
  if (outcome.kind === 'completed') return undefined;
  trouble.trials += 1;
  return decideAfterTrial(failureOf(outcome), trouble.trials, standingOf(endpoint, context), context.random);
}

function failureOf(outcome: Exclude<Outcome, { kind: 'completed' | 'abandoned' }>): Failure {
  return {
    outcome: outcome.kind,
    deadline: outcome.kind === 'lost' && outcome.deadline,
    because: becauseOf(outcome),
    retryAfterMs: outcome.kind === 'overloaded' ? outcome.retryAfterMs : 0,
  };
}

function standingOf({ server }: Endpoint, { run, fleet, tally }: Conversing) {
  return {
    ...fleet.standing(server),
    patienceMs: run.patienceMs,
    retryBudgetLeft: retryBudgetLeft(tally.sessionAnswers, tally.retries),
  };
}

function stopError(code: 'server.rejects' | 'server.gave-up', because: string): AerieError {
  if (code === 'server.gave-up') {
    return new AerieError(code, `The run is stopped: ${because}.`, {
      remedy: 'What is committed is safe. Look at the server, then run the same command again: it resumes.',
    });
  }
  return new AerieError(code, `The server does not do what is asked of it: ${because}.`, {
    remedy:
      'What is committed is safe. Correct the server, its key or the run file, then run the same command again: it resumes.',
  });
}
