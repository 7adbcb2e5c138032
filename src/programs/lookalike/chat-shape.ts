/** `POST /v1/chat/completions` as vLLM answers it under `return_token_ids`. Pure. */
import type { Message, ToolCall } from '../../base/conversation.ts';
import { sha256Hex } from '../../base/ids.ts';
import { refuseLength } from './refuse-length.ts';
import type { Scenario } from './scenario.ts';
import {
  asFields,
  asInteger,
  type Fields,
  parseObject,
  type Reading,
  type ReplyParts,
  readRid,
  renderVllmError,
  type Shape,
} from './shapes.ts';
import { encodeMessages, isRole } from './tokens.ts';
import { parseCalls } from './tool-calls.ts';

export const chatShape: Shape = {
  path: '/v1/chat/completions',
  read(body, settings, { refusals }) {
    const fields = parseObject(body);
    if (fields === undefined) return refuse(400, 'The body is not a JSON object.');
    const messages = readMessages(fields['messages']);
    if (messages === undefined) return refuse(400, "'messages' must be a list of {role, content} with text content.");
    const asked = {
      input: messages.map(({ role, content }) => ({ role, content })),
      lastText: messages.at(-1)?.content ?? '',
      promptText: messages.map(({ content }) => content).join('\n'),
      seed: asInteger(fields['seed']) ?? null,
    };
    const model = fields['model'];
    if (typeof model === 'string' && model !== settings.servedModelName) {
      return refuse(404, `The model \`${model}\` does not exist.`, asked);
    }
    return { ...asked, result: readAsk(fields, messages, settings.maxModelLen, refusals) };
  },
  render({ id, model, createdAt, promptIds, answer, usage, ids, splitsReasoning, hasTools }) {
    const called = hasTools && answer.finish === 'stop' ? parseCalls(answer.text) : undefined;
    const parts = called === undefined ? partsOf(answer.text, splitsReasoning) : calling(called, id);
    return {
      ...renderHead(id, model, createdAt),
      choices: [
        {
          index: 0,
          message: { role: 'assistant', refusal: null, tool_calls: [], ...parts },
          logprobs: null,
          finish_reason: called === undefined ? answer.finish : 'tool_calls',
          stop_reason: null,
          ...(ids === 'choice' ? { token_ids: answer.outputIds } : {}),
          ...(ids === 'sglang-choice' ? { prompt_token_ids: promptIds, response_token_ids: answer.outputIds } : {}),
          ...(ids === 'meta-info' ? renderMetaInfo(promptIds, answer.outputIds) : {}),
        },
      ],
      usage: renderUsage(usage),
      prompt_logprobs: null,
      ...(ids === 'choice' ? { prompt_token_ids: promptIds } : {}),
    };
  },
  renderWithoutChoices: ({ id, model, createdAt, promptIds, usage }) => ({
    ...renderHead(id, model, createdAt),
    choices: [],
    usage: renderUsage({ ...usage, completion: 0 }),
    prompt_token_ids: promptIds,
  }),
  renderError: renderVllmError,
};

/** As vLLM's hermes parser: what stands before the first call is content, and nothing there is null. */
function calling({ content, calls }: NonNullable<ReturnType<typeof parseCalls>>, id: string): object {
  const toolCalls = calls.map((called, at) => ({
    id: `chatcmpl-tool-${sha256Hex(`${id}/${at}`).slice(0, 32)}`,
    type: 'function',
    function: called,
  }));
  return { content: content || null, reasoning_content: null, tool_calls: toolCalls };
}

/** As vLLM's qwen3 parser: all of an answer that does not say `</think>` yet is reasoning. Nothing said is null. */
function partsOf(text: string, splitsReasoning: boolean): object {
  if (!splitsReasoning) return { content: text, reasoning_content: null };
  const [reasoning = '', ...rest] = text.replace('<think>', '').split('</think>');
  return { content: rest.length === 0 ? null : rest.join('</think>') || null, reasoning_content: reasoning || null };
}

/** Content may be text or text parts, as clients of the OpenAI shape send them, and null beside tool calls. undefined = none of these. */
export function readMessages(value: unknown): Message[] | undefined {
  if (!Array.isArray(value) || value.length === 0) return undefined;
  const messages: Message[] = [];
  for (const item of value) {
    const fields = asFields(item);
    const toolCalls = readCalls(fields?.['tool_calls']);
    const content = readContent(fields?.['content'] ?? (toolCalls.length > 0 ? '' : undefined));
    if (fields === undefined || content === undefined || !isRole(fields['role'])) return undefined;
    messages.push({ role: fields['role'], content, ...(toolCalls.length > 0 ? { toolCalls } : {}), ...readResult(fields) });
  }
  return messages;
}

function readCalls(value: unknown): ToolCall[] {
  if (!Array.isArray(value)) return [];
  return value.map((item) => {
    const called = asFields(asFields(item)?.['function']);
    return { id: textIn(asFields(item), 'id'), name: textIn(called, 'name'), arguments: textIn(called, 'arguments') };
  });
}

function readResult(fields: Fields): Pick<Message, 'toolCallId'> {
  return typeof fields['tool_call_id'] === 'string' ? { toolCallId: fields['tool_call_id'] } : {};
}

function textIn(fields: Fields | undefined, key: string): string {
  const value = fields?.[key];
  return typeof value === 'string' ? value : '';
}

/** As OpenAI: a result that says what it answers answers a call of the assistant before it. */
function findStrayResult(messages: readonly Message[]): string | undefined {
  let open: readonly string[] = [];
  for (const { role, toolCalls = [], toolCallId } of messages) {
    if (role !== 'tool') open = toolCalls.map(({ id }) => id);
    else if (toolCallId !== undefined && !open.includes(toolCallId)) return toolCallId;
  }
  return undefined;
}

function readContent(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value)) return undefined;
  const parts = value.map((part) => asFields(part)?.['text']);
  return parts.every((part) => typeof part === 'string') ? parts.join('') : undefined;
}

function readAsk(
  fields: Fields,
  messages: readonly Message[],
  maxModelLen: number,
  refusals: Scenario['refusals'],
): Reading['result'] {
  if (fields['stream'] === true) return refuse(400, 'The lookalike does not stream.').result;
  if ((asInteger(fields['n']) ?? 1) !== 1) return refuse(400, 'The lookalike gives one choice: n must be 1.').result;
  const stray = findStrayResult(messages);
  if (stray !== undefined) return refuse(400, `tool_call_id ${stray} answers no call of the assistant before it.`).result;
  const tools = Array.isArray(fields['tools']) ? fields['tools'].map((tool) => JSON.stringify(tool)) : [];
  const promptIds = encodeMessages(messages, fields['add_generation_prompt'] !== false, tools);
  const input = promptIds.length;
  const given = fields['max_completion_tokens'] ?? fields['max_tokens'] ?? Math.max(1, maxModelLen - input);
  const maxTokens = asInteger(given);
  if (maxTokens === undefined || maxTokens < 1) return refuse(400, `max_tokens must be at least 1, got ${String(given)}.`).result;
  const refusal = refuseLength(refusals, { input, maxTokens, limit: maxModelLen });
  if (refusal !== undefined) return { refusal };
  const metaInfo = ['return_prompt_token_ids', 'return_meta_info', 'logprobs'].every((key) => fields[key] === true);
  return {
    ask: {
      promptIds,
      maxTokens,
      metaInfo,
      tokenIds: fields['return_token_ids'] === true,
      hasTools: tools.length > 0,
      ...readRid(fields['rid']),
    },
  };
}

function renderMetaInfo(promptIds: readonly number[], outputIds: readonly number[]): object {
  return { prompt_token_ids: promptIds, meta_info: { output_token_logprobs: outputIds.map((id) => [-0.5, id, null]) } };
}

function refuse(
  status: number,
  message: string,
  asked = { input: undefined as unknown, promptText: '', seed: null as number | null },
): Reading {
  return { ...asked, result: { refusal: { status, body: renderVllmError(status, message) } } };
}

function renderHead(id: string, model: string, createdAt: number): object {
  return { id: `chatcmpl-${id}`, object: 'chat.completion', created: Math.floor(createdAt / 1000), model };
}

export function renderUsage({ prompt, completion, cached }: ReplyParts['usage']): object {
  return {
    prompt_tokens: prompt,
    total_tokens: prompt + completion,
    completion_tokens: completion,
    prompt_tokens_details: cached === undefined ? null : { cached_tokens: cached },
  };
}
