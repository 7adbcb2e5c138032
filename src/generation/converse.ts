/**
 * One conversation: its turns in order, each turn's attempts until one completes or the decision says otherwise.
 *
 *   take a slot → choose a server → send → outcome → completed: next turn | again: give the slot back, wait | set aside | stop
 *
 * The slot is kept between turns and given back at the reply, before anything is written. Nothing here touches a disk:
 * turns, records and attempts go to the committer. Decisions are pure and next door.
 */
import type { AerieError } from '../base/errors.ts';
import type { Prompt } from '../base/conversation.ts';
import { turnSeed } from '../base/ids.ts';
import type { Outcome, TurnRequest } from '../engine/dialect.ts';
import type { Fleet } from '../fleet/fleet.ts';
import type { Clock, Random } from '../host/host.ts';
import type { Lease } from '../ledger/ledger.ts';
import type { Endpoint } from '../server/endpoint.ts';
import type { Provenance, RecordTurn } from '../shard/record.ts';
import { renderRecord } from '../shard/render-record.ts';
import type { RunSpec } from '../spec/run.ts';
import type { Committer } from './committer.ts';
import { idsAfter, makeRecord, makeTurn, messagesForTurn, turnsOf } from './conversation.ts';
import { computeDeadlineMs } from './deadline.ts';
import { decideRetry, LOSSES_UNTIL_SUSPECT, retryBudgetLeft, type TurnHistory } from './decide-retry.ts';
import type { Gate } from './gate.ts';
import { sendTurn, shouldVerifyText, textProblem } from './send-attempt.ts';
import type { Tally } from './tally.ts';

export interface Conversing {
  readonly run: RunSpec;
  readonly fleet: Fleet;
  readonly gate: Gate;
  /** One at a time: prompts that were in flight at several server deaths. */
  readonly suspects: Gate;
  readonly committer: Committer;
  readonly tally: Tally;
  readonly clock: Clock;
  readonly random: Random;
  /** No further attempt: finish what is in flight. */
  readonly drain: AbortSignal;
  /** Give up what is in flight. */
  readonly abort: AbortSignal;
  readonly stop: (error: AerieError | string) => void;
  readonly provenanceOf: (endpoint: Endpoint) => Provenance;
  readonly templateKwargs: Readonly<Record<string, unknown>>;
}

interface Answered {
  readonly turn: RecordTurn;
  readonly endpoint: Endpoint;
  readonly ids: readonly number[];
}

/** The caller holds a slot of the gate; it is given back here. Resolves when the conversation is over for this worker. */
export async function converse(lease: Lease, prompt: Prompt, context: Conversing): Promise<void> {
  const { committer, tally } = context;
  const turns = lease.finishedTurns.map((body) => JSON.parse(body) as RecordTurn);
  let before: readonly number[] = idsAfter(turns);
  const asked = turnsOf(prompt);
  const slot = { held: true };
  try {
    for (let turn = turns.length; turn < asked; turn++) {
      const answered = await answerTurn(lease, prompt, turns, turn, before, context, slot);
      if (answered === undefined) return;
      turns.push(answered.turn);
      before = answered.ids;
      const isLast = turn === asked - 1;
      if (isLast) leaveSlot(context.gate, slot);
      tally.answered(lease.partition, answered.turn.outputIds.length, answered.turn.finish === 'length', isLast);
      if (!isLast) {
        committer.addTurn({
          partition: lease.partition,
          id: lease.id,
          fence: lease.fence,
          turn,
          body: JSON.stringify(answered.turn),
          tokens: answered.turn.outputIds.length,
          truncated: answered.turn.finish === 'length',
          launch: answered.endpoint.launch,
        });
        continue;
      }
      const record = makeRecord({
        prompt,
        partition: lease.partition,
        turns,
        exactness: answered.endpoint.dialect.exactness(answered.endpoint.facts),
        sampling: context.run.sampling,
        provenance: context.provenanceOf(answered.endpoint),
      });
      committer.addRecord({
        line: renderRecord(record),
        row: {
          partition: lease.partition,
          id: lease.id,
          fence: lease.fence,
          tokens: outputTokens(turns),
          turns: turns.length,
          truncated: turns.filter(({ finish }) => finish === 'length').length,
          launch: answered.endpoint.launch,
        },
      });
    }
  } finally {
    leaveSlot(context.gate, slot);
    tally.left(lease.partition, asked - turns.length);
  }
}

/** The attempts of one turn. undefined: set aside, drained or given up; then the lease is left for the next worker. */
async function answerTurn(
  lease: Lease,
  prompt: Prompt,
  turns: readonly RecordTurn[],
  turn: number,
  before: readonly number[],
  context: Conversing,
  slot: { held: boolean },
): Promise<Answered | undefined> {
  const { run, fleet, gate, suspects, committer, tally, clock, random, drain, abort } = context;
  const history = { ownFailures: 0, losses: 0, overloads: 0 };
  const seed = turnSeed(run.sampling.seed, prompt.id, turn);
  const messages = messagesForTurn(prompt, turns, turn);
  for (;;) {
    if (!slot.held) {
      await gate.enter(true);
      slot.held = true;
    }
    if (drain.aborted) return undefined;
    const isSuspect = history.losses >= LOSSES_UNTIL_SUSPECT;
    if (isSuspect) await suspects.enter(false);
    try {
      const endpoint = await fleet.choose(drain);
      const request: TurnRequest = {
        model: endpoint.facts.model === '' ? run.model : endpoint.facts.model,
        messages,
        sampling: run.sampling,
        seed,
        templateKwargs: context.templateKwargs,
        extraBody: run.extraBody,
      };
      const { outcome, because } = await attempt(lease, turn, endpoint, request, context);
      if (outcome.kind === 'completed') return { ...makeTurn(outcome.reply, before, seed, endpoint.server), endpoint };
      if (outcome.kind === 'abandoned') return undefined;
      leaveSlot(gate, slot);

      const deadline = outcome.kind === 'lost' && outcome.deadline;
      count(history, outcome, deadline);
      if (outcome.kind !== 'overloaded' && !(outcome.kind === 'lost' && !deadline)) tally.retried();
      const decision = decideRetry(
        { outcome: outcome.kind, deadline, because, retryAfterMs: outcome.kind === 'overloaded' ? outcome.retryAfterMs : 0 },
        history,
        { ...fleet.standing(), retryBudgetLeft: retryBudgetLeft(tally.sessionAnswers, tally.retries) },
        random,
      );
      if (decision.kind === 'stop') {
        context.stop(decision.because);
        return undefined;
      }
      if (decision.kind === 'set-aside') {
        committer.addAside(
          { partition: lease.partition, id: lease.id, fence: lease.fence, because: decision.because },
          { kind: 'prompt.set-aside', subject: `${lease.partition}/${lease.id}`, facts: { because: decision.because } },
        );
        tally.setAside(lease.partition, outputTokens(turns));
        return undefined;
      }
      await clock.sleep(decision.afterMs, drain);
    } catch (thrown) {
      if (!drain.aborted && !abort.aborted) context.stop(thrown as AerieError);
      return undefined;
    } finally {
      if (isSuspect) suspects.leave();
    }
  }
}

async function attempt(
  lease: Lease,
  turn: number,
  endpoint: Endpoint,
  request: TurnRequest,
  context: Conversing,
): Promise<{ outcome: Outcome; because: string }> {
  const { fleet, committer, tally, clock, run, abort, gate } = context;
  const promptBytes = request.messages.reduce((sum, { content }) => sum + content.length, 0);
  const deadlineMs =
    run.attemptTimeoutMs > 0
      ? run.attemptTimeoutMs
      : computeDeadlineMs({
          maxTokens: run.sampling.maxTokens,
          promptBytes,
          inFlight: gate.limit,
          sequences: endpoint.facts.sequences,
        });
  const startedAt = clock.now();
  fleet.sent(endpoint);
  tally.sent();
  let outcome = await sendTurn(endpoint, request, deadlineMs, abort);
  if (outcome.kind === 'completed' && shouldVerifyText(tally.repliesOf(endpoint.server))) {
    const problem = await textProblem(endpoint, outcome, abort);
    if (problem !== undefined) outcome = { kind: 'malformed', status: 200, because: problem };
  }
  const because = 'because' in outcome ? outcome.because : '';
  fleet.ended(endpoint, `${lease.partition}/${lease.id}`, outcome.kind, outcome.kind === 'lost' && outcome.deadline);
  tally.ended(endpoint.server);
  committer.addAttempt({
    partition: lease.partition,
    id: lease.id,
    turn,
    launch: endpoint.launch,
    startedAt,
    endedAt: clock.now(),
    outcome: outcome.kind,
    status: 'status' in outcome ? outcome.status : outcome.kind === 'completed' ? 200 : 0,
    because,
    tokens: outcome.kind === 'completed' ? outcome.reply.outputIds.length : 0,
  });
  return { outcome, because };
}

function count(history: { -readonly [K in keyof TurnHistory]: number }, outcome: Outcome, deadline: boolean): void {
  if (outcome.kind === 'overloaded') history.overloads += 1;
  else if (outcome.kind === 'lost' && !deadline) history.losses += 1;
  else history.ownFailures += 1;
}

function outputTokens(turns: readonly RecordTurn[]): number {
  return turns.reduce((sum, { outputIds }) => sum + outputIds.length, 0);
}

function leaveSlot(gate: Gate, slot: { held: boolean }): void {
  if (slot.held) gate.leave();
  slot.held = false;
}
