/**
 * One turn until it is answered, set aside, or left for the next worker.
 *
 *   suspects one at a time → slot → server → trial question if needed → attempt → answered
 *                                                                       ├→ cut, and to be continued: again, with what there is
 *                                                                       └→ not: give the slot back, decide, wait, again
 *
 * A slot is never held while waiting for another suspect or for a backoff, so trouble takes no room from others.
 * An answer that has begun is in flight until it is whole: a drain waits for its last piece.
 */

import { type AsideReason, isContextReason } from '../base/aside-reason.ts';
import type { Message } from '../base/conversation.ts';
import { AerieError } from '../base/errors.ts';
import { turnSeed } from '../base/ids.ts';
import { Parcel } from '../base/parcel.ts';
import type { Outcome, TurnRequest } from '../engine/dialect.ts';
import type { Sending } from '../fleet/fleet.ts';
import type { Lease, PromptKey } from '../ledger/ledger.ts';
import type { Endpoint } from '../server/endpoint.ts';
import type { RunSpec } from '../spec/run.ts';
import { attempt, becauseOf } from './attempt.ts';
import { type KeptTurn, makeTurn } from './conversation.ts';
import type { Conversing } from './conversing.ts';
import {
  afterLength,
  decideAfterTrial,
  decideRetry,
  type Failure,
  needsProof,
  type RetryDecision,
  retryBudgetLeft,
} from './decide-retry.ts';
import type { Slot } from './gate.ts';
import { GrowingAnswer, type GrowthLimits } from './growing-answer.ts';
import { findTooLong } from './measure-prompt.ts';
import type { PromptSettings } from './prompt-settings.ts';
import { decodeIds } from './send-attempt.ts';
import { Trouble } from './trouble.ts';

export interface TurnToAnswer {
  readonly key: PromptKey & Pick<Lease, 'round'>;
  /** What is asked: everything said before, and the user's message or the tool results. */
  readonly messages: readonly Message[];
  readonly tools: readonly string[];
  readonly settings: PromptSettings;
  /** The turns before this one, and prompt + output ids of the last. */
  readonly turns: readonly KeptTurn[];
  readonly before: readonly number[];
  readonly slot: Slot;
}

export interface Answered {
  readonly kind: 'answered';
  readonly turn: Parcel<KeptTurn>;
  readonly endpoint: Endpoint;
  /** Launches that made earlier pieces of it; the last was made by `endpoint`. */
  readonly alsoBy: readonly number[];
}
/** `endpoint`: who would have answered. */
export interface Unanswerable {
  readonly kind: 'set-aside';
  readonly reason: AsideReason;
  readonly because: string;
  readonly endpoint: Endpoint;
}
/** `left`: drained, given up or stopped; the lease is left for the next worker. */
export type TurnEnd = Answered | Unanswerable | { readonly kind: 'left' };
type Step =
  | Answered
  | Unanswerable
  | Exclude<RetryDecision, { kind: 'set-aside' }>
  | { readonly kind: 'left' }
  | { readonly kind: 'more' };

const LEFT = { kind: 'left' } as const;
const MORE = { kind: 'more' } as const;
const CUT = { kind: 'again', afterMs: 0 } as const;

export async function answerTurn(asked: TurnToAnswer, context: Conversing): Promise<TurnEnd> {
  const { suspects, clock, drain, stop } = context;
  const trouble = new Trouble();
  const answer = new GrowingAnswer(limitsOf(asked, context.run));
  for (;;) {
    const { isSuspect } = trouble;
    if (isSuspect) await suspects.enter(false);
    let step: Step;
    try {
      step = await tryOnce(asked, answer, trouble, context);
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
      case 'more':
        break;
      case 'again':
        await clock.sleep(step.afterMs, drain);
    }
  }
}

async function tryOnce(asked: TurnToAnswer, answer: GrowingAnswer, trouble: Trouble, context: Conversing): Promise<Step> {
  const { fleet, drain } = context;
  const { key, turns, before, slot } = asked;
  await slot.take();
  if (drain.aborted && answer.home === undefined) return LEFT;
  const endpoint = answer.home ?? (await fleet.choose(drain, trouble.noRoomIn));
  if (endpoint === undefined) return LEFT;
  if (answer.room(endpoint) === 0) return await finish(asked, answer, context); // another server, with less room
  const answeredSince = fleet.answersOf(endpoint.server) > trouble.answersSeen(endpoint.server);
  if (needsProof(trouble.history(fleet.deaths), answeredSince)) {
    const unproved = await askTrial(endpoint, trouble, context);
    if (unproved !== undefined) return giveBack(slot, unproved);
  }
  const request = requestOf(asked, answer, endpoint, context.run);
  const tooLong = answer.isBegun ? undefined : await findTooLong(endpoint, request, context);
  if (tooLong !== undefined) return endAt(endpoint, afterLength(tooLong), trouble, context);
  const drops = dropsOf(endpoint);
  const { outcome, sending } = await attempt({ ...key, turn: turns.length }, endpoint, request, context);
  if (outcome.kind === 'completed') {
    const reply = outcome.reply.take();
    // Whole in one piece, as nearly always: no promise carries it from here on but its parcel.
    if (!answer.isBegun && !answer.goesOn(reply, endpoint))
      return answeredBy(makeTurn(reply, before, request.seed, endpoint.server), endpoint);
    await answer.add({ reply, seed: request.seed, endpoint }, (ids) => decodeIds(endpoint, ids, context));
    return answer.room(endpoint) > 0 ? MORE : await finish(asked, answer, context);
  }
  // What the server does not go on with is an answer all the same, cut where it is.
  if (outcome.kind === 'refused' && answer.isBegun) return await finish(asked, answer, context);
  answer.failed();
  slot.leave();
  if (outcome.kind === 'abandoned') return LEFT;
  if (await wasCut(outcome, endpoint, drops, context)) return CUT;
  return afterFailure(outcome, sending, trouble, context);
}

type Failed = Exclude<Outcome, { kind: 'completed' | 'abandoned' }>;

function afterFailure(outcome: Failed, sending: Sending, trouble: Trouble, context: Conversing): Step {
  const { fleet } = context;
  const { endpoint } = sending;
  const failure = failureOf(outcome);
  const isOwn = trouble.note(failure, sending, fleet);
  if (isOwn) context.tally.retried();
  const decision = decideRetry(failure, trouble.history(fleet.deaths), standingOf(endpoint, context), context.random);
  return endAt(endpoint, decision, trouble, context);
}

/** The end of ssh is heard a moment after the end of its connections. */
const WAY_NEWS_MS = 1_000;

function dropsOf({ drops }: Endpoint): number {
  return drops === undefined ? 0 : drops();
}

/** The connection to its machine was lost with the answer: a pulled cable says nothing of a prompt, however often it is pulled. */
async function wasCut({ kind }: Failed, { drops }: Endpoint, before: number, { clock, drain }: Conversing): Promise<boolean> {
  if (drops === undefined || kind !== 'lost') return false;
  if (drops() === before) await clock.sleep(WAY_NEWS_MS, drain);
  return drops() > before;
}

/** A server that rejects everything is left out, and the others go on; what has no room here is asked where the context is longer. */
function endAt(endpoint: Endpoint, decision: RetryDecision, trouble: Trouble, { fleet }: Conversing): Step {
  if (decision.kind === 'stop' && decision.code === 'server.rejects') {
    fleet.leaveOut(endpoint.server, stopError(decision.code, decision.because));
    return { kind: 'again', afterMs: 0 };
  }
  if (decision.kind !== 'set-aside') return decision;
  const { contextTokens } = endpoint.facts;
  if (!isContextReason(decision.reason) || contextTokens === 0 || !fleet.hasLongerContext(contextTokens))
    return { ...decision, endpoint };
  trouble.noRoomIn = contextTokens;
  return { kind: 'again', afterMs: 0 };
}

/** The answer is whole: its pieces become the one turn. */
async function finish({ before }: TurnToAnswer, answer: GrowingAnswer, context: Conversing): Promise<Answered> {
  const { first, last, pieces } = answer;
  const reply = await answer.join((ids) => decodeIds(last.endpoint, ids, context));
  const turn = makeTurn(reply, before, first.seed, last.endpoint.server);
  const others = new Set(pieces.map(({ endpoint }) => endpoint.launch).filter((launch) => launch !== last.endpoint.launch));
  return answeredBy(pieces.length === 1 ? turn : { ...turn, pieces: pieces.length }, last.endpoint, [...others]);
}

function answeredBy(turn: KeptTurn, endpoint: Endpoint, alsoBy: readonly number[] = []): Answered {
  return { kind: 'answered', turn: new Parcel(turn), endpoint, alsoBy };
}

function limitsOf({ key, settings, tools }: TurnToAnswer, run: RunSpec): GrowthLimits {
  const continuations = run.partitions.find(({ name }) => name === key.partition)?.continuations ?? 0;
  return { maxTokens: settings.sampling.maxTokens, continuations, hasTools: tools.length > 0 };
}

function requestOf(asked: TurnToAnswer, answer: GrowingAnswer, endpoint: Endpoint, run: RunSpec): TurnRequest {
  const { key, settings, messages, tools, turns } = asked;
  const { facts } = endpoint;
  const { sampling } = settings;
  return {
    model: facts.model === '' ? run.model : facts.model,
    ...{ messages, tools, ...settings },
    seed: turnSeed(sampling.seed, key.id, turns.length, key.round, answer.pieces.length),
    ...(answer.isBegun ? { soFar: answer.soFar, sampling: { ...sampling, maxTokens: answer.room(endpoint) } } : {}),
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
  const decision = decideAfterTrial(failureOf(outcome), trouble.trials, standingOf(endpoint, context), context.random);
  return endAt(endpoint, decision, trouble, context);
}

function failureOf(outcome: Failed): Failure {
  return {
    outcome: outcome.kind,
    deadline: outcome.kind === 'lost' && outcome.deadline,
    because: becauseOf(outcome),
    reason: outcome.kind === 'refused' ? outcome.reason : undefined,
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
