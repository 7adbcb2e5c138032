/**
 * One attempt: one request for one turn to one server, ended by an outcome. Never throws for anything the network or
 * the server does. The deadline is Aerie's own; a second look at text against ids happens on a sample of replies.
 */
import { bug } from '../base/errors.ts';
import type {
  Continuation,
  Dialect,
  EngineRequest,
  MoreRequest,
  Outcome,
  PreparedRequest,
  RenderedTurns,
  TurnReply,
  TurnRequest,
} from '../engine/dialect.ts';
import type { Clock } from '../host/host.ts';
import type { HttpReply } from '../host/http.ts';
import { openTimeLimit } from '../host/time-limit.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { sameMoreText, sameText } from './answer-text.ts';

/** Replies of a server whose ids are decoded and compared with their text: the first 32, then 1 in 256 (DESIGN §6). */
const FIRST_VERIFIED = 32;
const THEN_ONE_IN = 256;
const DETOKENIZE_TIMEOUT_MS = 30_000;

export interface SendOptions {
  readonly deadlineMs: number;
  /** Gives the attempt up. */
  readonly abort: AbortSignal;
  readonly clock: Clock;
}

export function shouldVerifyText(repliesBefore: number): boolean {
  return repliesBefore < FIRST_VERIFIED || repliesBefore % THEN_ONE_IN === 0;
}

/** What came of a request: a reply, still unread; or it was given up because its time was up. */
export type Arrival = HttpReply | { readonly kind: 'late'; readonly deadlineMs: number };

export async function sendTurn(endpoint: Endpoint, turn: TurnRequest, options: SendOptions): Promise<Arrival> {
  const { deadlineMs, abort, clock } = options;
  const request = renderRequest(endpoint, turn);
  const limit = openTimeLimit(clock, deadlineMs, abort);
  const reply = await endpoint.turns.send(request, limit.signal);
  limit.close();
  return reply.kind === 'aborted' && limit.isUp ? { kind: 'late', deadlineMs } : reply;
}

/** Takes the body out of the reply. */
export function readArrival(arrival: Arrival, endpoint: Endpoint, turn: TurnRequest): Outcome {
  switch (arrival.kind) {
    case 'aborted':
      return { kind: 'abandoned' };
    case 'late':
      return { kind: 'lost', because: `no answer in ${Math.round(arrival.deadlineMs / 1000)} s`, deadline: true };
    case 'transport':
      return { kind: 'lost', because: `${arrival.code}: ${arrival.text}`.slice(0, 300), deadline: false };
    case 'http':
      return readReply(endpoint, turn, { ...arrival, body: arrival.body.take() });
  }
}

/** A turn as a chat or by the ids of its prompt, or more of its answer. */
function renderRequest({ dialect, facts }: Endpoint, turn: TurnRequest): EngineRequest {
  if (asksForMore(turn)) return continuationOf(dialect).render(turn);
  return isPrepared(turn) ? renderedTurnsOf(dialect).render(turn) : dialect.renderTurn(turn, facts);
}

function readReply({ dialect, facts }: Endpoint, turn: TurnRequest, reply: TurnReply): Outcome {
  if (asksForMore(turn)) return continuationOf(dialect).read(reply, facts, turn);
  if (isPrepared(turn)) return renderedTurnsOf(dialect).read(reply, facts, turn);
  return dialect.readReply(reply, facts, turn.sampling.maxTokens);
}

function isPrepared(turn: TurnRequest): turn is PreparedRequest {
  return turn.prompt !== undefined;
}

export function renderedTurnsOf({ name, renderedTurns }: Dialect): RenderedTurns {
  if (renderedTurns === undefined) throw bug(`A prompt was rendered for ${name}, which is not asked so.`);
  return renderedTurns;
}

function asksForMore(turn: TurnRequest): turn is MoreRequest {
  return turn.soFar !== undefined;
}

function continuationOf({ name, continuation }: Dialect): Continuation {
  if (continuation === undefined) throw bug(`More of an answer was asked of ${name}, which takes no ids.`);
  return continuation;
}

/** What the server's own tokenizer makes of the ids, or undefined where it cannot say. */
export async function decodeIds(
  endpoint: Endpoint,
  ids: readonly number[],
  { abort, clock }: Pick<SendOptions, 'abort' | 'clock'>,
): Promise<string | undefined> {
  const limit = openTimeLimit(clock, DETOKENIZE_TIMEOUT_MS, abort);
  const reply = await endpoint.control.send(endpoint.dialect.renderDetokenize(ids), limit.signal);
  limit.close();
  if (reply.kind !== 'http') return undefined;
  return endpoint.dialect.readDetokenize({ status: reply.status, body: reply.body.take() });
}

export interface VerifyOptions extends Pick<SendOptions, 'abort' | 'clock'> {
  readonly stop: readonly string[];
  /** It goes on with an answer that may have been cut inside a character. */
  readonly isMore: boolean;
}

/** Decodes the ids by the server's own tokenizer: undefined when they are the text, or when the server cannot say. */
export async function textProblem(endpoint: Endpoint, outcome: Outcome, options: VerifyOptions): Promise<string | undefined> {
  if (outcome.kind !== 'completed' || outcome.reply.outputIds.length === 0) return undefined;
  const { outputIds, text, reasoning, toolCalls, endsWithStopId } = outcome.reply;
  if (reasoning !== '' || toolCalls.length > 0) return undefined; // the engine has split the text: ids decode to more than `text`
  const ids = endsWithStopId ? outputIds.slice(0, -1) : outputIds;
  if (ids.length === 0) return text === '' ? undefined : `the reply has text and only a stop id`;
  const decoded = await decodeIds(endpoint, ids, options);
  if (decoded === undefined || sameText(decoded, text) || isCutAtStop(decoded, text, options.stop)) return undefined;
  if (options.isMore && sameMoreText(decoded, text)) return undefined;
  return `its ids decode to ${decoded.length} characters, its text has ${text.length}`;
}

/** Engines leave the stop text, and what its last token holds beyond it, out of the text and never out of the ids. */
function isCutAtStop(decoded: string, text: string, stop: readonly string[]): boolean {
  return stop.some((end) => {
    const at = decoded.indexOf(end);
    return at >= 0 && sameText(decoded.slice(0, at), text);
  });
}
