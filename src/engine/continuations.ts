/**
 * An answer that was cut goes on: prompt and answer so far go back to the engine as ids, so that nothing is rendered or
 * tokenised anew, and what comes is added to the answer. vLLM takes ids as the prompt of `/v1/completions`, SGLang and the
 * embedded engine as `input_ids` of `/generate`. Pure; a reply is untrusted, and believed only where its ids agree with
 * its counts and its prompt is the one that was sent.
 */
import { malformed, outcomeOfStatus, RETURN_TOKEN_IDS, renderSampling } from './chat-completion.ts';
import type { Continuation, MoreRequest, Outcome, ServerFacts, TurnReply } from './dialect.ts';
import { looseObject, parseLoose } from './loose-json.ts';
import { readEnding, wrongFinish } from './read-ending.ts';
import { readIds } from './read-ids.ts';

type Fields = Readonly<Record<string, unknown>>;

const NO_PATH = ' (truncated: continue needs this path; the server, or a proxy before it, has none)';

/** vLLM's `/v1/completions` with a prompt of ids. */
export const byCompletions: Continuation = {
  render({ model, soFar, extraBody, ...asked }) {
    const body = { model, prompt: soFar, ...renderSampling(asked), stream: false, ...extraBody, ...RETURN_TOKEN_IDS };
    return { method: 'POST', path: '/v1/completions', body: JSON.stringify(body) };
  },
  read(reply, facts, turn) {
    if (reply.status !== 200) return outcomeOfStatus(reply, undefined, NO_PATH);
    const answer = parseLoose(reply.body);
    const choice = looseObject(Array.isArray(answer['choices']) ? answer['choices'][0] : undefined);
    return judge({ answer, choice, text: choice['text'] }, facts, turn);
  },
};

/** SGLang's `/generate`. It does not give the prompt's ids back, only their number. */
export const byGenerate: Continuation = {
  render({ soFar, extraBody, ...asked }) {
    const { max_tokens, seed, ...sampling } = renderSampling(asked);
    const sampling_params = { ...sampling, max_new_tokens: max_tokens, sampling_seed: seed, ...extraBody };
    return { method: 'POST', path: '/generate', body: JSON.stringify({ input_ids: soFar, sampling_params, stream: false }) };
  },
  read: (reply, facts, turn) =>
    reply.status === 200 ? readGenerated(reply, facts, turn) : outcomeOfStatus(reply, undefined, NO_PATH),
};

/** A 200 of `/generate`; `soFar` is the prompt that was sent. */
export function readGenerated(reply: TurnReply, facts: ServerFacts, turn: MoreRequest): Outcome {
  const { text, output_ids: outputIds, meta_info: metaInfo } = parseLoose(reply.body);
  const meta = looseObject(metaInfo);
  const finish = looseObject(meta['finish_reason']);
  const usage = { ...meta, prompt_tokens_details: { cached_tokens: meta['cached_tokens'] } };
  const choice = { token_ids: outputIds, finish_reason: finish['type'], matched_stop: finish['matched'] };
  return judge({ answer: { usage, prompt_token_ids: turn.soFar }, choice, text }, facts, turn);
}

interface Told {
  readonly answer: Fields;
  readonly choice: Fields;
  readonly text: unknown;
}

function judge({ answer, choice, text }: Told, facts: ServerFacts, turn: MoreRequest): Outcome {
  if (typeof text !== 'string') return malformed('no text in the reply');
  const ids = readIds(answer, choice, facts, 'always');
  if (typeof ids === 'string') return malformed(ids);
  const other = ids.promptIds.findIndex((id, at) => id !== turn.soFar[at]);
  if (other !== -1 || ids.promptIds.length !== turn.soFar.length)
    return malformed(`its prompt is not the ${turn.soFar.length} ids that were sent`);
  const ending = readEnding(choice, ids, facts, turn.sampling.maxTokens);
  if (ending === undefined) return malformed(wrongFinish(choice));
  return { kind: 'completed', reply: { ...ids, text, reasoning: '', toolCalls: [], ...ending } };
}
