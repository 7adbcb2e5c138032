/**
 * A prompt that is longer than the context, found before it is sent, where its engine can count its tokens. A token is at least
 * one byte of text (but for what a template adds, which the count has), so only a text of more bytes than the context has
 * tokens is counted at all; every other one that is too long is refused by the server, in numbers of its own.
 * What cannot be counted is sent: a prompt that fits is never refused here.
 */
import { type ContextRefusal, judgeLengths } from '../engine/context-refusal.ts';
import type { TurnRequest } from '../engine/dialect.ts';
import type { Clock } from '../host/host.ts';
import { openTimeLimit } from '../host/time-limit.ts';
import type { Endpoint } from '../server/endpoint.ts';

/** A tokenizer takes about a second for a megabyte; servers refuse longer texts by their characters, without tokenizing. */
const MOST_COUNTED_BYTES = 2 ** 20;
const COUNT_TIMEOUT_MS = 30_000;

/** undefined: it fits, or nobody can say before it is sent. */
export async function findTooLong(
  { dialect, facts, control }: Endpoint,
  request: TurnRequest,
  { clock, abort }: { readonly clock: Clock; readonly abort: AbortSignal },
): Promise<ContextRefusal | undefined> {
  const context = facts.contextTokens;
  const bytes = bytesOf(request);
  if (dialect.countTokens === undefined || context === 0 || bytes <= context || bytes > MOST_COUNTED_BYTES) return undefined;
  const limit = openTimeLimit(clock, COUNT_TIMEOUT_MS, abort);
  const reply = await control.send(dialect.countTokens.render(request), limit.signal);
  limit.close();
  const prompt = reply.kind === 'http' ? dialect.countTokens.read({ status: reply.status, body: reply.body.take() }) : undefined;
  if (prompt === undefined) return undefined;
  const answer = answerTokensOf(request);
  return prompt + answer <= context ? undefined : judgeLengths({ prompt, answer, context });
}

function bytesOf({ messages, tools }: TurnRequest): number {
  const texts = [...messages.map(({ content }) => content), ...tools];
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
}

/** A cap that `extra-body` lays over the run file's is not read: then only a prompt without room for one token is too long. */
function answerTokensOf({ sampling, extraBody }: TurnRequest): number {
  return 'max_tokens' in extraBody || 'max_completion_tokens' in extraBody ? 1 : sampling.maxTokens;
}
