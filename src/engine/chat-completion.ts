/**
 * One turn as an OpenAI chat completion, with the fields by which an engine is asked for token ids: rendering the request
 * and judging the reply. A reply is believed only when its counts, ids and finish agree; everything else is an outcome
 * with a reason, never an exception, because replies are untrusted input.
 */
import type { Message, ToolCall } from '../base/conversation.ts';
import { formatCount } from '../base/units.ts';
import { type Lengths, readContextRefusal } from './context-refusal.ts';
import type { EngineRequest, IdsPromise, Outcome, Reply, ServerFacts, TurnReply, TurnRequest } from './dialect.ts';
import { looseObject, textOf } from './loose-json.ts';
import { readEnding, wrongFinish } from './read-ending.ts';
import { readIds } from './read-ids.ts';

/** Characters of a server's own words: what a line of a table can hold. */
const MOST_QUOTED = 300;
/** … and of which more is looked at: white space, and the numbers in a sentence. */
const MOST_READ = 10 * MOST_QUOTED;

/** vLLM ≥ 0.10.2 and newer SGLang give the ids of prompt and answer for this field. */
export const RETURN_TOKEN_IDS = { return_token_ids: true } as const;

/** How one engine is spoken to. */
export interface ChatStyle {
  /** Fields that ask for token ids. They come last: no extra field may take the ids away. */
  readonly idFields: Readonly<Record<string, unknown>>;
  /** Only fields of OpenAI's own API, for endpoints that refuse what they do not know. */
  readonly isPlain?: boolean;
}

export function renderChat(turn: TurnRequest, { idFields, isPlain = false }: ChatStyle): EngineRequest {
  const body = {
    model: turn.model,
    messages: turn.messages.map(renderMessage),
    ...(turn.tools.length > 0 ? { tools: turn.tools.map((tool) => JSON.parse(tool) as unknown) } : {}),
    ...(isPlain ? renderPlainSampling(turn) : renderSampling(turn)),
    stream: false,
    ...(Object.keys(turn.templateKwargs).length > 0 ? { chat_template_kwargs: turn.templateKwargs } : {}),
    ...turn.extraBody,
    ...idFields,
  };
  return { method: 'POST', path: '/v1/chat/completions', body: JSON.stringify(body) };
}

/**
 * Every field that a server would else fill from its model's generation_config.json: what the run file says is what is
 * asked, and what it leaves out is off. `top_k` −1 is "off" in every version of vLLM; 0 is so only in the newer ones.
 */
export function renderSampling({ sampling, seed }: Pick<TurnRequest, 'sampling' | 'seed'>): Record<string, unknown> {
  return {
    max_tokens: sampling.maxTokens,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK > 0 ? sampling.topK : -1,
    min_p: 0,
    repetition_penalty: 1,
    ...(sampling.stop.length > 0 ? { stop: sampling.stop } : {}),
    seed,
  };
}

/** Without the fields that OpenAI's API does not have, unless one of them is wanted. */
function renderPlainSampling({ sampling, seed }: Pick<TurnRequest, 'sampling' | 'seed'>): Record<string, unknown> {
  return {
    max_tokens: sampling.maxTokens,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    ...(sampling.topK > 0 ? { top_k: sampling.topK } : {}),
    ...(sampling.stop.length > 0 ? { stop: sampling.stop } : {}),
    seed,
  };
}

/** In OpenAI's spelling; an assistant that called tools, and the results, name each other. */
export function renderMessage({ role, content, toolCalls = [], toolCallId = '', name = '' }: Message): Record<string, unknown> {
  const calls = toolCalls.map((call) => ({
    id: call.id,
    type: 'function',
    function: { name: call.name, arguments: call.arguments },
  }));
  return {
    ...{ role, content },
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...(role === 'tool' ? { tool_call_id: toolCallId, ...(name === '' ? {} : { name }) } : {}),
  };
}

/** What a reply has to hold. */
export interface Expected {
  readonly facts: ServerFacts;
  readonly maxTokens: number;
  readonly ids: IdsPromise;
}

export function readChat(reply: TurnReply, { facts, maxTokens, ids: promise }: Expected): Outcome {
  if (reply.status !== 200) return outcomeOfStatus(reply, { prompt: 0, answer: maxTokens, context: facts.contextTokens });
  if (reply.isCut === true) return malformed(`200 with more than ${formatCount(reply.body.length)} characters`);
  let answer: Record<string, unknown>;
  try {
    answer = looseObject(JSON.parse(reply.body));
  } catch {
    return malformed(`200 with ${formatCount(reply.body.length)} characters that are not JSON: ${errorText(reply.body, 80)}`);
  }
  const choice = looseObject(Array.isArray(answer['choices']) ? answer['choices'][0] : undefined);
  if (choice['message'] === undefined) return malformed('no choices[0].message in the reply');
  const ids = readIds(answer, choice, facts, promise);
  if (typeof ids === 'string') return malformed(ids);
  const message = looseObject(choice['message']);
  const text = message['content'] ?? '';
  if (typeof text !== 'string') return malformed(`message.content is ${typeof text}, not text`);
  // The answer was taken away: the same question would end so again.
  if (choice['finish_reason'] === 'content_filter')
    return { kind: 'refused', status: 200, reason: 'answer-withheld', because: 'a filter of the endpoint (content_filter)' };
  const ending = readEnding(choice, ids, facts, maxTokens);
  if (ending === undefined) return malformed(wrongFinish(choice));
  const toolCalls = readToolCalls(message['tool_calls']);
  if (toolCalls === undefined) return malformed('a call in message.tool_calls has no name, or arguments that cannot be written');
  const completed: Reply = {
    ...ids,
    text,
    reasoning: textOf(message['reasoning_content']) || textOf(message['reasoning']),
    toolCalls,
    ...ending,
  };
  return { kind: 'completed', reply: completed };
}

/** What a status other than 200 means for this request and for those after it. */
export function outcomeOfStatus(reply: TurnReply, asked: Lengths = NOTHING_KNOWN, wrongPlace = WRONG_PLACE): Outcome {
  const { status } = reply;
  if (status === 401 || status === 403) return { kind: 'unauthorised', status, because: quoteReply(reply, REFUSED_KEY) };
  if (status === 404 || status === 405) return { kind: 'unauthorised', status, because: quoteReply(reply, wrongPlace) };
  const because = quoteReply(reply, '');
  if (status === 408 || status === 409 || status === 425 || status === 429 || status === 503) {
    return { kind: 'overloaded', status, because, retryAfterMs: reply.retryAfterMs };
  }
  if (status >= 400 && status < 500) return refused(reply, asked);
  if (status >= 500) return { kind: 'failed', status, because };
  return { kind: 'malformed', status, because };
}

const NOTHING_KNOWN: Lengths = { prompt: 0, answer: 0, context: 0 };

function refused(reply: TurnReply, asked: Lengths): Outcome {
  const { status } = reply;
  const context = readContextRefusal(sentenceOf(reply.body), reply.body, asked);
  if (context === undefined) return { kind: 'refused', status, because: quoteReply(reply, '') };
  const { reason, because } = context;
  // The numbers first: sentences are long.
  const words = `HTTP ${status}: ${errorText(reply.body, MOST_QUOTED - because.length)}`;
  return { kind: 'refused', status, reason, because: because === '' ? words : `${because}; ${words}` };
}

const REFUSED_KEY = ' (the key is wrong or missing, or may not do this)';
const WRONG_PLACE = ' (the address in attach: or the name of the model is wrong)';

/** Status, the server's own words, and what they mean: the words are cut, so that the hint after them stays. */
function quoteReply(reply: TurnReply, hint: string): string {
  return `HTTP ${reply.status}: ${errorText(reply.body, MOST_QUOTED - hint.length)}${hint}`;
}

/** The server's own sentence, cut to a length that a table can hold. */
export function errorText(body: string, most = MOST_QUOTED): string {
  const oneLine = sentenceOf(body);
  if (oneLine === '') return 'no text';
  return oneLine.length > most ? `${oneLine.slice(0, most)}…` : oneLine;
}

function sentenceOf(body: string): string {
  let text = body;
  try {
    const parsed = looseObject(JSON.parse(body));
    const error = parsed['error'];
    text =
      textOf(looseObject(error)['message']) || textOf(error) || textOf(parsed['message']) || textOf(parsed['detail']) || body;
  } catch {
    // not JSON: quote it as it is
  }
  // A body may have megabytes.
  return text.slice(0, MOST_READ).replace(/\s+/g, ' ').trim();
}

export function malformed(because: string): Outcome {
  // What the server sent is quoted in it, and may be of any length.
  return { kind: 'malformed', status: 200, because: because.slice(0, MOST_QUOTED) };
}

/** A call without a name is none. Some endpoints give arguments as a value, or calls without an id: a result names its call by it. */
function readToolCalls(value: unknown): ToolCall[] | undefined {
  const calls: ToolCall[] = [];
  for (const call of Array.isArray(value) ? (value as readonly unknown[]) : []) {
    const called = looseObject(looseObject(call)['function']);
    const name = textOf(called['name']);
    const written = renderArguments(called['arguments']);
    if (name === '' || written === undefined) return undefined;
    calls.push({ id: textOf(looseObject(call)['id']) || `call-${calls.length + 1}`, name, arguments: written });
  }
  return calls;
}

/** undefined: nested without end, which can be read and not be written. */
function renderArguments(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  try {
    return JSON.stringify(value ?? {});
  } catch {
    return undefined;
  }
}
