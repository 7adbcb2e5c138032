/**
 * Record → conversation row: the prompt's messages with the answers between them, in a trainer's spelling. Pure.
 *
 * | format | row | no place for |
 * |---|---|---|
 * | specforge | `{id, status, conversations:[{role, content, reasoning_content?}]}` | tools (its validator refuses the role) |
 * | modelopt | `{conversation_id, messages:[…]}` | tools (its collator renders no definitions) |
 * | automodel | `{id, messages:[…, tool_calls?, tool_call_id?], tools?}` | |
 * | eagle | `{id, conversations:[{from: human or gpt, value}]}` | tools, reasoning, a system message but its own |
 * | parquet | `{id, partition, messages, tools}`, every key in every row | |
 *
 * Promises: optional system message first, then user and assistant in turn, an assistant last; `reasoning_content` on
 * every answer of a file or on none; no other column (an extra one would reach SpecForge's chat template).
 * Left out, with the reason: what the trainer refuses or would render as something else than the model saw.
 */
import { createHash } from 'node:crypto';
import type { ToolCall } from '../base/conversation.ts';
import type { TrainingRecord } from '../shard/record.ts';
import { type ChatMessage, joinRecord } from './join-record.ts';
import { answerProblem, promptProblem, reasoningProblem, TEXT_PROBLEMS, textProblem } from './text-problems.ts';

export type ConversationFormat = 'specforge' | 'modelopt' | 'automodel' | 'eagle' | 'parquet';

export const CONVERSATION_REASONS = [
  ...TEXT_PROBLEMS,
  'message-order',
  'tool-call',
  'tool-definitions',
  'tool-arguments',
  'system-message',
  'reasoning',
] as const;
export type ConversationReason = (typeof CONVERSATION_REASONS)[number];

export interface ConversationRowOptions {
  readonly format: ConversationFormat;
  readonly idPrefix: string;
  /** Does this file carry `reasoning_content`? */
  readonly withReasoning: boolean;
}

export type ConversationRow = Readonly<Record<string, unknown>>;

export type ConversationResult =
  | {
      readonly kind: 'row';
      readonly row: ConversationRow;
      /** It has tool definitions, so it goes to a file where every row has them. */
      readonly hasTools: boolean;
      /** It holds answers that the source gave. */
      readonly hasGiven: boolean;
    }
  | { readonly kind: 'left-out'; readonly reason: ConversationReason };

interface Places {
  readonly tools: boolean;
  readonly reasoning: boolean;
  readonly system: boolean;
}

const PLACES: Readonly<Record<ConversationFormat, Places>> = {
  specforge: { tools: false, reasoning: true, system: true },
  modelopt: { tools: false, reasoning: true, system: true },
  automodel: { tools: true, reasoning: true, system: true },
  eagle: { tools: false, reasoning: false, system: false },
  parquet: { tools: true, reasoning: true, system: true },
};

/** sha256 of the system prompt that traineagle3 puts before every conversation: a record that has just that one loses nothing. */
const EAGLE_SYSTEM_SHA256 = 'd52c188a3c969c4ece4e68846b15aaf27ef75639b76c08bdd71f062e52c7b9fc';

export function hasReasoning(record: TrainingRecord): boolean {
  return record.turns.some((turn) => turn.reasoning !== '');
}

/** Do rows of this format carry reasoning only where the file has any? Elsewhere always or never. */
export function isReasoningOptional(format: ConversationFormat): boolean {
  return format !== 'parquet' && PLACES[format].reasoning;
}

export function renderConversationRow(record: TrainingRecord, options: ConversationRowOptions): ConversationResult {
  const conversation = joinRecord(record);
  const reason = conversationProblem(record, conversation, options.format);
  if (reason !== undefined) return { kind: 'left-out', reason };
  return {
    kind: 'row',
    row: RENDER[options.format](record, conversation, options),
    hasTools: record.tools.length > 0,
    hasGiven: conversation.some(({ isGiven }) => isGiven),
  };
}

/** The first reason why the trainer would not take this conversation, or would make another one of it. */
function conversationProblem(
  record: TrainingRecord,
  conversation: readonly ChatMessage[],
  format: ConversationFormat,
): ConversationReason | undefined {
  if (!isOrdered(record)) return 'message-order';
  const { tools, reasoning, system } = PLACES[format];
  // Without its calls an answer reads as something the model did not say.
  if (!tools && conversation.some(({ toolCalls }) => toolCalls.length > 0)) return 'tool-call';
  if (!tools && record.tools.length > 0) return 'tool-definitions';
  if (!reasoning && hasReasoning(record)) return 'reasoning';
  if (!system && conversation.some(({ role, content }) => role === 'system' && !isEagleSystem(content))) return 'system-message';
  for (const message of conversation) {
    const problem = messageProblem(message);
    if (problem !== undefined) return problem;
  }
  return format === 'automodel' ? toolProblem(record, conversation) : undefined;
}

/** One system message at most, first; then user and answer in turn, tool results after the answer that calls, an answer last. */
export function isOrdered(record: TrainingRecord): boolean {
  const conversation = joinRecord(record);
  const generated = conversation.filter(({ role, isGiven }) => role === 'assistant' && !isGiven).length;
  if (generated !== record.turns.length || conversation.at(-1)?.role !== 'assistant') return false;
  return conversation.every((message, at) => mayFollow(conversation[at - 1], message));
}

function mayFollow(before: ChatMessage | undefined, { role }: ChatMessage): boolean {
  switch (before?.role) {
    case undefined:
      return role === 'system' || role === 'user';
    case 'system':
      return role === 'user';
    case 'user':
      return role === 'assistant';
    case 'assistant':
      return role === (before.toolCalls.length > 0 ? 'tool' : 'user');
    case 'tool':
      return role === 'tool' || role === 'assistant';
  }
}

function messageProblem({ role, content, reasoning, toolCalls }: ChatMessage): ConversationReason | undefined {
  if (role === 'tool') return textProblem(content); // a tool may answer nothing
  if (role !== 'assistant') return promptProblem(content);
  // An answer that calls need not say anything.
  const problem = toolCalls.length > 0 ? reasoningProblem(content) : answerProblem(content);
  return problem ?? reasoningProblem(reasoning) ?? textProblem(toolCalls.map((call) => `${call.name}${call.arguments}`).join(''));
}

/** Chat templates render arguments and definitions from values, so the JSON text must be read without loss. */
function toolProblem(record: TrainingRecord, conversation: readonly ChatMessage[]): ConversationReason | undefined {
  if (record.tools.some((tool) => parseObject(tool) === undefined)) return 'tool-definitions';
  const calls = conversation.flatMap(({ toolCalls }) => toolCalls);
  return calls.some((call) => parseObject(call.arguments) === undefined) ? 'tool-arguments' : undefined;
}

/** undefined = no JSON object, or it holds a whole number that a double cannot. */
function parseObject(text: string): object | undefined {
  let isLossy = false;
  try {
    const value: unknown = JSON.parse(text, (_key, entry: unknown) => {
      isLossy ||= typeof entry === 'number' && Number.isInteger(entry) && !Number.isSafeInteger(entry);
      return entry;
    });
    return typeof value === 'object' && value !== null && !Array.isArray(value) && !isLossy ? value : undefined;
  } catch {
    return undefined;
  }
}

function isEagleSystem(content: string): boolean {
  return createHash('sha256').update(content).digest('hex') === EAGLE_SYSTEM_SHA256;
}

type Render = (record: TrainingRecord, conversation: readonly ChatMessage[], options: ConversationRowOptions) => ConversationRow;

const RENDER: Readonly<Record<ConversationFormat, Render>> = {
  specforge: (record, conversation, options) => ({
    id: `${options.idPrefix}${record.id}`,
    status: 'success',
    conversations: conversation.map((message) => plainMessage(message, options)),
  }),
  modelopt: (record, conversation, options) => ({
    conversation_id: `${options.idPrefix}${record.id}`,
    messages: conversation.map((message) => plainMessage(message, options)),
  }),
  automodel: (record, conversation, options) => ({
    id: `${options.idPrefix}${record.id}`,
    messages: conversation.map((message) => ({
      ...plainMessage(message, options),
      // Only where they mean something: some templates ask whether the key is there, not what it holds.
      ...(message.toolCalls.length > 0 ? { tool_calls: message.toolCalls.map(renderCall) } : {}),
      ...(message.role === 'tool' ? { tool_call_id: message.toolCallId } : {}),
    })),
    ...(record.tools.length > 0 ? { tools: record.tools.map(parseObject) } : {}),
  }),
  eagle: (record, conversation, options) => ({
    id: `${options.idPrefix}${record.id}`,
    conversations: conversation
      .filter(({ role }) => role !== 'system')
      .map(({ role, content }) => ({ from: role === 'user' ? 'human' : 'gpt', value: content })),
  }),
  parquet: (record, conversation, options) => ({
    id: `${options.idPrefix}${record.id}`,
    partition: record.partition,
    messages: conversation.map(({ role, content, reasoning, toolCalls, toolCallId }) => ({
      role,
      content,
      reasoning_content: reasoning,
      tool_calls: toolCalls.map((call) => ({ ...callHead(call), function: { name: call.name, arguments: call.arguments } })),
      tool_call_id: toolCallId,
    })),
    tools: `[${record.tools.join(',')}]`,
  }),
};

function plainMessage(message: ChatMessage, { withReasoning }: ConversationRowOptions): ConversationRow {
  const { role, content, reasoning } = message;
  return { role, content, ...(withReasoning && role === 'assistant' ? { reasoning_content: reasoning } : {}) };
}

function renderCall(call: ToolCall): object {
  return { ...callHead(call), function: { name: call.name, arguments: parseObject(call.arguments) } };
}

function callHead({ id }: ToolCall): object {
  return { id, type: 'function' };
}
