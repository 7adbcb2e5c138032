/**
 * The identity of a prompt and its normalised line. Pure.
 *
 * Promises: the id depends on roles, contents and their order alone, never on the shape or the file that the prompt came
 * from, and stays the same in every version of Aerie (a golden value in the test holds it). `parsePromptLine` gives back
 * what `renderPromptLine` was given, or throws `ledger.damaged`: the id is checked against the content.
 */
import type { Message, Prompt } from '../base/conversation.ts';
import { ROLES } from '../base/conversation.ts';
import { AerieError } from '../base/errors.ts';
import { contentId } from '../base/ids.ts';

/** JSON with the keys in this order, empty ones left out, and no spaces; the text whose sha256 is the id. */
export function renderCanonicalText(messages: readonly Message[], tools: readonly string[] = []): string {
  return JSON.stringify({ messages: messages.map(canonicalMessage), tools });
}

export function computePromptId(messages: readonly Message[], tools: readonly string[] = []): string {
  return contentId(renderCanonicalText(messages, tools));
}

export function makePrompt(messages: readonly Message[], tools: readonly string[] = []): Prompt {
  return { id: computePromptId(messages, tools), messages, tools };
}

/** One line of `prompts/NAME.jsonl`, without its line feed. */
export function renderPromptLine({ id, messages, tools }: Prompt): string {
  return JSON.stringify({ id, messages: messages.map(canonicalMessage), tools });
}

function canonicalMessage({ role, content, toolCalls = [], toolCallId = '', name = '' }: Message): Message {
  return {
    role,
    content,
    ...(toolCalls.length > 0
      ? { toolCalls: toolCalls.map((call) => ({ id: call.id, name: call.name, arguments: call.arguments })) }
      : {}),
    ...(toolCallId === '' ? {} : { toolCallId }),
    ...(name === '' ? {} : { name }),
  };
}

/** With or without its line feed. */
export function parsePromptLine(line: string): Prompt {
  let row: unknown;
  try {
    row = JSON.parse(line);
  } catch (thrown) {
    throw damaged('it is not JSON', line, thrown);
  }
  if (typeof row !== 'object' || row === null || !('id' in row) || !('messages' in row) || !Array.isArray(row.messages)) {
    throw damaged('id or messages are missing', line);
  }
  const entries: readonly unknown[] = row.messages;
  const messages = entries.filter(isMessage).map(canonicalMessage);
  if (messages.length !== entries.length) throw damaged('a message is not a role and a text', line);
  const tools: unknown = 'tools' in row ? row.tools : [];
  if (!Array.isArray(tools) || !tools.every((tool) => typeof tool === 'string')) throw damaged('its tools are not texts', line);
  const prompt = makePrompt(messages, tools);
  if (prompt.id !== row.id)
    throw damaged(`its id is ${JSON.stringify(row.id)?.slice(0, 60)}, its content gives ${prompt.id}`, line);
  return prompt;
}

function isMessage(value: unknown): value is Message {
  if (typeof value !== 'object' || value === null || !('role' in value) || !('content' in value)) return false;
  const { role, content } = value;
  const { toolCalls = [], toolCallId = '', name = '' } = value as Partial<Record<'toolCalls' | 'toolCallId' | 'name', unknown>>;
  const isText = typeof content === 'string' && typeof toolCallId === 'string' && typeof name === 'string';
  return isText && Array.isArray(toolCalls) && ROLES.some((known) => known === role);
}

function damaged(because: string, line: string, cause?: unknown): AerieError {
  return new AerieError(
    'ledger.damaged',
    `A stored prompt of ${Buffer.byteLength(line)} bytes is not what enrolment wrote: ${because}.`,
    {
      because: 'The file below prompts/ was changed after it was written, or the ledger points at the wrong bytes.',
      remedy: 'Put the file back as it was, or start the run again in a new folder. Records already written are not touched.',
    },
    cause,
  );
}
