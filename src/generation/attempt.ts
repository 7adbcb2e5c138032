/** One attempt of a turn and its account: sent, judged, counted, and handed to the committer as a row. */
import { Parcel } from '../base/parcel.ts';
import type { Outcome, Reply, TurnRequest } from '../engine/dialect.ts';
import type { Sending } from '../fleet/fleet.ts';
import type { PromptKey } from '../ledger/ledger.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { answerTokens } from '../shard/record.ts';
import type { Conversing } from './conversing.ts';
import { deadlineOf } from './deadline.ts';
import { readArrival, type SendOptions, sendTurn, shouldVerifyText, textProblem } from './send-attempt.ts';

type Completed = Extract<Outcome, { kind: 'completed' }>;

export interface Attempted {
  readonly outcome: Exclude<Outcome, Completed> | { readonly kind: 'completed'; readonly reply: Parcel<Reply> };
  readonly sending: Sending;
}

export async function attempt(
  key: PromptKey & { readonly turn: number },
  endpoint: Endpoint,
  request: TurnRequest,
  context: Conversing,
): Promise<Attempted> {
  const { run, gate, fleet, committer, tally, clock, abort } = context;
  const { partition, id, turn } = key;
  const startedAt = clock.now();
  const sending = fleet.sent(endpoint);
  tally.sent();
  const deadlineMs = deadlineOf(request, {
    run,
    sequences: endpoint.facts.sequences,
    inFlight: Math.max(gate.limit, gate.taken),
  });
  let outcome = await ask(endpoint, request, { deadlineMs, abort, clock }, context);
  if (outcome.kind === 'completed' && shouldVerifyText(tally.replied(endpoint.server)))
    outcome = await verified(outcome, endpoint, request, context);
  fleet.ended(sending, `${partition}/${id}`, outcome);
  tally.ended();
  committer.addAttempt({
    ...{ partition, id, turn, launch: endpoint.launch, startedAt, endedAt: clock.now(), outcome: outcome.kind },
    status: 'status' in outcome ? outcome.status : outcome.kind === 'completed' ? 200 : 0,
    because: becauseOf(outcome),
    tokens: outcome.kind === 'completed' ? answerTokens(outcome.reply) : 0,
  });
  return { outcome: outcome.kind === 'completed' ? { ...outcome, reply: new Parcel(outcome.reply) } : outcome, sending };
}

/** A prompt that cannot be made ready is an attempt all the same: its server did not do what it is there for. */
async function ask(
  endpoint: Endpoint,
  request: TurnRequest,
  options: SendOptions,
  { rendered }: Pick<Conversing, 'rendered'>,
): Promise<Outcome> {
  const prepared = await rendered.prepare(endpoint, request, options);
  if ('outcome' in prepared) return prepared.outcome;
  return readArrival(await sendTurn(endpoint, prepared.turn, options), endpoint, prepared.turn);
}

export function becauseOf(outcome: Outcome): string {
  return 'because' in outcome ? outcome.because : '';
}

async function verified(
  outcome: Outcome,
  endpoint: Endpoint,
  { sampling, soFar }: TurnRequest,
  { clock, abort }: Conversing,
): Promise<Outcome> {
  const problem = await textProblem(endpoint, outcome, { abort, clock, stop: sampling.stop, isMore: soFar !== undefined });
  return problem === undefined ? outcome : { kind: 'malformed', status: 200, because: problem };
}
