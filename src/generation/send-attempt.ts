/**
 * One attempt: one request for one turn to one server, ended by an outcome. Never throws for anything the network or
 * the server does. The deadline is Aerie's own; a second look at text against ids happens on a sample of replies.
 */
import type { EngineRequest, Outcome, TurnRequest } from '../engine/dialect.ts';
import type { Clock } from '../host/host.ts';
import type { HttpReply } from '../host/http.ts';
import { openTimeLimit } from '../host/time-limit.ts';
import type { Endpoint } from '../server/endpoint.ts';

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
  const request: EngineRequest = endpoint.dialect.renderTurn(turn, endpoint.facts);
  const limit = openTimeLimit(clock, deadlineMs, abort);
  const reply = await endpoint.turns.send(request, limit.signal);
  limit.close();
  return reply.kind === 'aborted' && limit.isUp ? { kind: 'late', deadlineMs } : reply;
}

/** Takes the body out of the reply. */
export function readArrival(arrival: Arrival, { dialect, facts }: Endpoint, { sampling }: TurnRequest): Outcome {
  switch (arrival.kind) {
    case 'aborted':
      return { kind: 'abandoned' };
    case 'late':
      return { kind: 'lost', because: `no answer in ${Math.round(arrival.deadlineMs / 1000)} s`, deadline: true };
    case 'transport':
      return { kind: 'lost', because: `${arrival.code}: ${arrival.text}`.slice(0, 300), deadline: false };
    case 'http':
      return dialect.readReply({ ...arrival, body: arrival.body.take() }, facts, sampling.maxTokens);
  }
}

/** Decodes the ids by the server's own tokenizer: undefined when they are the text, or when the server cannot say. */
export async function textProblem(
  endpoint: Endpoint,
  outcome: Outcome,
  { abort, clock, stop }: Pick<SendOptions, 'abort' | 'clock'> & { readonly stop: readonly string[] },
): Promise<string | undefined> {
  if (outcome.kind !== 'completed' || outcome.reply.outputIds.length === 0) return undefined;
  const { outputIds, text, reasoning, toolCalls, endsWithStopId } = outcome.reply;
  if (reasoning !== '' || toolCalls.length > 0) return undefined; // the engine has split the text: ids decode to more than `text`
  const ids = endsWithStopId ? outputIds.slice(0, -1) : outputIds;
  if (ids.length === 0) return text === '' ? undefined : `the reply has text and only a stop id`;
  const limit = openTimeLimit(clock, DETOKENIZE_TIMEOUT_MS, abort);
  const reply = await endpoint.control.send(endpoint.dialect.renderDetokenize(ids), limit.signal);
  limit.close();
  const decoded =
    reply.kind === 'http' ? endpoint.dialect.readDetokenize({ status: reply.status, body: reply.body.take() }) : undefined;
  if (decoded === undefined || sameText(decoded, text) || isCutAtStop(decoded, text, stop)) return undefined;
  return `its ids decode to ${decoded.length} characters, its text has ${text.length}`;
}

/** Engines leave the stop text, and what its last token holds beyond it, out of the text and never out of the ids. */
function isCutAtStop(decoded: string, text: string, stop: readonly string[]): boolean {
  return stop.some((end) => {
    const at = decoded.indexOf(end);
    return at >= 0 && sameText(decoded.slice(0, at), text);
  });
}

/** A truncated answer can end in half a character, which one side shows as U+FFFD and the other leaves out; stripped blanks at the ends likewise. */
function sameText(decoded: string, text: string): boolean {
  const bare = (value: string) => value.replace(/\uFFFD+$/u, '').trim();
  return bare(decoded) === bare(text);
}
