/**
 * One turn as an OpenAI chat completion with vLLM's `return_token_ids` extension: rendering the request and judging
 * the reply. A reply is believed only when its counts, ids and finish agree; everything else is an outcome with a
 * reason, never an exception, because replies are untrusted input.
 */
import type { Message, ToolCall } from '../base/conversation.ts';
import type { EngineRequest, Outcome, Reply, ServerFacts, TurnReply, TurnRequest } from './dialect.ts';

/** Characters of a server's own words: what a line of a table can hold. */
const MOST_QUOTED = 300;

export function renderChat(turn: TurnRequest): EngineRequest {
  const body = {
    model: turn.model,
    messages: turn.messages.map(renderMessage),
    ...(turn.tools.length > 0 ? { tools: turn.tools.map((tool) => JSON.parse(tool) as unknown) } : {}),
    ...renderSampling(turn),
    stream: false,
    return_token_ids: true,
    ...(Object.keys(turn.templateKwargs).length > 0 ? { chat_template_kwargs: turn.templateKwargs } : {}),
    ...turn.extraBody,
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

/** In OpenAI's spelling; an assistant that called tools, and the results, name each other. */
function renderMessage({ role, content, toolCalls = [], toolCallId = '', name = '' }: Message): Record<string, unknown> {
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

export function readChat(reply: TurnReply, facts: ServerFacts, maxTokens: number): Outcome {
  if (reply.status !== 200) return outcomeOfStatus(reply);
  let answer: Record<string, unknown>;
  try {
    answer = looseObject(JSON.parse(reply.body));
  } catch {
    return malformed(`200 with ${reply.body.length} characters that are not JSON`);
  }
  const choice = looseObject(Array.isArray(answer['choices']) ? answer['choices'][0] : undefined);
  if (choice['message'] === undefined) return malformed('no choices[0].message in the reply');
  const ids = readIds(answer, choice, facts);
  if (typeof ids === 'string') return malformed(ids);
  const message = looseObject(choice['message']);
  const text = message['content'] ?? '';
  if (typeof text !== 'string') return malformed(`message.content is ${typeof text}, not text`);
  const finish = readFinish(choice['finish_reason']);
  if (finish === undefined)
    return malformed(`finish_reason ${JSON.stringify(choice['finish_reason'])} is none of stop, length, tool_calls`);

  const endsWithStopId = stoppedByItself(ids.outputIds, choice, facts);
  // Some servers say `stop` for an answer that filled its cap; without a stop id at its end it was cut.
  const isStopText = typeof choice['stop_reason'] === 'string';
  const isCut = finish === 'length' || (ids.usage.completion >= maxTokens && !endsWithStopId && !isStopText);
  const completed: Reply = {
    ...ids,
    text,
    reasoning: textOf(message['reasoning_content']) || textOf(message['reasoning']),
    toolCalls: readToolCalls(message['tool_calls']),
    finish: isCut ? 'length' : finish,
    endsWithStopId,
  };
  return { kind: 'completed', reply: completed };
}

/** The ids of prompt and answer with the usage that agrees with them, or what is wrong. */
function readIds(
  answer: Record<string, unknown>,
  choice: Record<string, unknown>,
  facts: ServerFacts,
): Pick<Reply, 'promptIds' | 'outputIds' | 'usage'> | string {
  const promptIds = answer['prompt_token_ids'] ?? choice['prompt_token_ids'];
  const outputIds = choice['token_ids'];
  const usage = readUsage(answer['usage']);
  const wrong =
    idProblem('prompt_token_ids', promptIds, facts.vocabularySize) ??
    idProblem('token_ids', outputIds, facts.vocabularySize) ??
    countProblem(promptIds as number[], outputIds as number[], usage);
  return wrong ?? { promptIds: promptIds as number[], outputIds: outputIds as number[], usage };
}

/** The last id is a stop id; where the server's stop ids are unknown, its word for it. */
function stoppedByItself(outputIds: readonly number[], choice: Record<string, unknown>, facts: ServerFacts): boolean {
  if (facts.stopIds.length > 0) return facts.stopIds.includes(outputIds.at(-1) ?? -1);
  return choice['finish_reason'] !== 'length' && (choice['stop_reason'] ?? null) === null;
}

/** What a status other than 200 means for this request and for those after it. */
export function outcomeOfStatus(reply: TurnReply): Outcome {
  const { status } = reply;
  const because = `HTTP ${status}: ${errorText(reply.body)}`;
  if (status === 401 || status === 403 || status === 404 || status === 405) return { kind: 'unauthorised', status, because };
  if (status === 408 || status === 409 || status === 425 || status === 429 || status === 503) {
    return { kind: 'overloaded', status, because, retryAfterMs: reply.retryAfterMs };
  }
  if (status >= 400 && status < 500) return { kind: 'refused', status, because };
  if (status >= 500) return { kind: 'failed', status, because };
  return { kind: 'malformed', status, because };
}

/** The server's own sentence, cut to a length that a table can hold. */
export function errorText(body: string): string {
  let text = body;
  try {
    const parsed = looseObject(JSON.parse(body));
    const error = parsed['error'];
    text =
      textOf(looseObject(error)['message']) || textOf(error) || textOf(parsed['message']) || textOf(parsed['detail']) || body;
  } catch {
    // not JSON: quote it as it is
  }
  const oneLine = text.replace(/\s+/g, ' ').trim();
  if (oneLine === '') return 'no text';
  return oneLine.length > MOST_QUOTED ? `${oneLine.slice(0, MOST_QUOTED)}…` : oneLine;
}

export function looseObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

export function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : -1;
}

function malformed(because: string): Outcome {
  // What the server sent is quoted in it, and may be of any length.
  return { kind: 'malformed', status: 200, because: because.slice(0, MOST_QUOTED) };
}

/** One loop, not a schema: 4,000 ids a reply, thousands of replies in flight. */
function idProblem(name: string, ids: unknown, vocabularySize: number): string | undefined {
  if (!Array.isArray(ids)) return `no ${name} in the reply`;
  if (ids.length === 0) return `${name} is empty`;
  const limit = vocabularySize > 0 ? vocabularySize : 2 ** 31;
  for (let at = 0; at < ids.length; at++) {
    const id: unknown = ids[at];
    if (typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id >= limit) {
      return `${name}[${at}] is ${JSON.stringify(id)}, the vocabulary has ${limit} ids`;
    }
  }
  return undefined;
}

function countProblem(promptIds: readonly number[], outputIds: readonly number[], usage: Reply['usage']): string | undefined {
  if (usage.prompt !== promptIds.length) return `usage says ${usage.prompt} prompt tokens, the reply has ${promptIds.length} ids`;
  if (usage.completion !== outputIds.length)
    return `usage says ${usage.completion} completion tokens, the reply has ${outputIds.length} ids`;
  return undefined;
}

function readUsage(value: unknown): Reply['usage'] {
  const usage = looseObject(value);
  const cached = countOf(looseObject(usage['prompt_tokens_details'])['cached_tokens']);
  return {
    prompt: countOf(usage['prompt_tokens']),
    completion: countOf(usage['completion_tokens']),
    cached: Math.max(0, cached),
  };
}

function readFinish(value: unknown): Reply['finish'] | undefined {
  if (value === 'stop' || value === 'length') return value;
  if (value === 'tool_calls') return 'tool-calls';
  return undefined;
}

function readToolCalls(value: unknown): ToolCall[] {
  if (!Array.isArray(value)) return [];
  return value.map((call) => {
    const called = looseObject(looseObject(call)['function']);
    return { id: textOf(looseObject(call)['id']), name: textOf(called['name']), arguments: textOf(called['arguments']) };
  });
}
