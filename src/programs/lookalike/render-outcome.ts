/**
 * The answer of one request, with the fault that struck it worked in → the bytes to send and what the journal says of them.
 * Pure. Only the faults that shape a reply are here; those that never reply are in `serve-generation.ts`.
 */
import type { Answer } from './compose-answer.ts';
import type { JournalAnswer } from './journal.ts';
import type { Fault } from './scenario.ts';
import type { ReplyParts, Shape } from './shapes.ts';
import { STOP_ID, VOCABULARY_SIZE } from './tokens.ts';

export interface OutgoingReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly journal: JournalAnswer;
}

/** What a proxy in front of a dead engine says, with the wrong status. */
const GARBAGE = '<html><head><title>502 Bad Gateway</title></head><body>upstream prematurely closed connection</body></html>';

export interface PartsWithoutUsage extends Omit<ReplyParts, 'usage'> {
  /** Tokens found in the prefix cache; undefined: not to be said. */
  readonly cachedTokens: number | undefined;
}

export function renderAnswer(shape: Shape, base: PartsWithoutUsage, fault: Fault | undefined): OutgoingReply {
  if (fault?.do === 'garbage') return reply(200, GARBAGE, 'text/html', { status: 200, fault: fault.do });
  const answer = spoilAnswer(base.answer, fault);
  const miscount = fault?.do === 'wrong-count' ? 1 : 0;
  const usage = { prompt: base.promptIds.length, completion: answer.outputIds.length + miscount, cached: base.cachedTokens };
  const parts = { ...base, answer, usage };
  if (fault?.do === 'empty' && fault.form === 'no-choices') {
    return reply(200, JSON.stringify(shape.renderWithoutChoices(parts)), 'application/json', { status: 200, fault: fault.do });
  }
  const { finish, outputIds, text } = answer;
  const sent = { finish, promptIds: base.promptIds, outputIds, text };
  return reply(200, JSON.stringify(shape.render(parts)), 'application/json', { status: 200, fault: fault?.do ?? '', sent });
}

/** Any status but 200: a refusal, or a fault that says one. */
export function renderStatus(status: number, body: string | object, fault: string, retryAfterSeconds?: number): OutgoingReply {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const plain = reply(status, text, typeof body === 'string' ? 'text/plain' : 'application/json', { status, fault });
  if (retryAfterSeconds === undefined) return plain;
  return { ...plain, headers: { ...plain.headers, 'retry-after': String(retryAfterSeconds) } };
}

function spoilAnswer(answer: Answer, fault: Fault | undefined): Answer {
  if (fault?.do === 'empty') return { outputIds: fault.form === 'only-stop' ? [STOP_ID] : [], text: '', finish: 'stop' };
  if (fault?.do !== 'bad-ids') return answer;
  const outputIds = [...answer.outputIds];
  outputIds[0] = fault.id ?? VOCABULARY_SIZE; // the first id past the vocabulary
  return { ...answer, outputIds };
}

function reply(status: number, body: string, type: string, journal: JournalAnswer): OutgoingReply {
  return { status, body, journal, headers: { 'content-type': type, 'content-length': String(Buffer.byteLength(body)) } };
}
