/**
 * A prompt and its answers, put together: what is asked next, and what the whole conversation is. Pure.
 *
 * An answer is generated after each user message that no given assistant message follows, and after tool results. Where an
 * answer calls tools, its calls take the next tool results that the source has, in order; a result that names another tool,
 * or is not there, ends the conversation. Where it calls none, the results that the source has for that turn are passed over.
 */
import type { Message, ToolCall } from '../base/conversation.ts';

/** What of an answer the conversation goes on with. Reasoning is not fed back, as the templates of thinking models expect. */
export interface GivenAnswer {
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
}

export type NextTurn =
  | { readonly kind: 'ask'; readonly messages: readonly Message[] }
  | { readonly kind: 'over'; readonly isMissingToolResult: boolean };

/** What the next answer is asked with, or that there is none. */
export function findNextTurn(messages: readonly Message[], answers: readonly GivenAnswer[]): NextTurn {
  const { conversation, end } = walk(messages, answers);
  if (end === 'ask') return { kind: 'ask', messages: conversation };
  return { kind: 'over', isMissingToolResult: end === 'tool-result-missing' };
}

/** Everything that was said, up to the last answer where the conversation ended before its last turn. */
export function joinConversation(messages: readonly Message[], answers: readonly GivenAnswer[]): Message[] {
  const { conversation, end, answered } = walk(messages, answers);
  return end === 'ask' ? conversation.slice(0, answered) : conversation;
}

/** The most answers the prompt can ask for: one after each user message to be answered, one more after each tool result. */
export function countTurns(messages: readonly Message[]): number {
  let turns = 0;
  let isGiven = false;
  for (const [at, { role }] of messages.entries()) {
    const next = messages[at + 1]?.role;
    if (role === 'assistant') isGiven = true;
    if (role === 'user') isGiven = next === 'assistant';
    if (role === 'user' && next !== 'assistant') turns += 1;
    else if (role === 'tool' && (!isGiven || (next !== 'tool' && next !== 'assistant'))) turns += 1;
  }
  return turns;
}

interface Walk {
  readonly conversation: Message[];
  /** Its messages up to the last generated answer. */
  readonly answered: number;
  readonly end: 'ask' | 'done' | 'tool-result-missing';
}

function walk(messages: readonly Message[], answers: readonly GivenAnswer[]): Walk {
  const conversation: Message[] = [];
  let used = 0;
  let answered = 0;
  let at = 0;
  const resultsHere = () => {
    let end = at;
    while (messages[end]?.role === 'tool') end += 1;
    return messages.slice(at, end);
  };
  while (at < messages.length) {
    const message = messages[at] as Message;
    conversation.push(message);
    at += 1;
    if (!isAsked(message, messages[at])) continue;
    for (;;) {
      const answer = answers[used];
      if (answer === undefined) return { conversation, answered, end: 'ask' };
      used += 1;
      conversation.push(answerMessage(answer));
      answered = conversation.length;
      if (answer.toolCalls.length === 0) break;
      const results = matchResults(answer.toolCalls, resultsHere());
      if (results === undefined) return { conversation, answered, end: 'tool-result-missing' };
      conversation.push(...results);
      at += results.length;
    }
    at += resultsHere().length;
  }
  return { conversation, answered, end: 'done' };
}

/** Is an answer generated between these two messages? */
function isAsked(message: Message, next: Message | undefined): boolean {
  if (message.role === 'user') return next?.role !== 'assistant';
  return message.role === 'tool' && next?.role !== 'tool' && next?.role !== 'assistant';
}

function answerMessage({ text, toolCalls }: GivenAnswer): Message {
  return { role: 'assistant', content: text, ...(toolCalls.length > 0 ? { toolCalls } : {}) };
}

/** The source's next results with the ids of these calls, or undefined where one is missing or is another tool's. */
function matchResults(calls: readonly ToolCall[], results: readonly Message[]): Message[] | undefined {
  const matched = calls.map((call, nth) => {
    const result = results[nth];
    const isSameTool = result !== undefined && (result.name === undefined || result.name === call.name);
    return isSameTool ? { ...result, toolCallId: call.id } : undefined;
  });
  return matched.every((result) => result !== undefined) ? matched : undefined;
}
