/**
 * A record → its whole conversation, as a trainer should see it. Pure.
 *
 * Each answer the model generated stands where it was asked for, with its reasoning and its tool calls; answers that the
 * source gave (`turns: last`) and tool results stand between them as they were sent.
 */
import type { Role, ToolCall } from '../base/conversation.ts';
import type { TrainingRecord } from '../shard/record.ts';
import { joinConversation } from '../shard/walk-conversation.ts';

export interface ChatMessage {
  readonly role: Role;
  readonly content: string;
  /** Of a generated answer; '' elsewhere. */
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  /** Of a tool result; '' elsewhere. */
  readonly toolCallId: string;
  /** An answer that the source gave: the model did not write it, and no loss mask of token rows covers it. */
  readonly isGiven: boolean;
}

export function joinRecord(record: TrainingRecord): ChatMessage[] {
  // The walk passes on the messages of the prompt as they are, so what is an answer and not among them was generated.
  const given = new Set(record.messages);
  let answered = 0;
  return joinConversation(record.messages, record.turns).map((message) => {
    const isAnswer = message.role === 'assistant';
    const isGiven = isAnswer && given.has(message);
    const turn = isAnswer && !isGiven ? record.turns[answered++] : undefined;
    return {
      role: message.role,
      content: message.content,
      reasoning: turn?.reasoning ?? '',
      toolCalls: message.toolCalls ?? [],
      toolCallId: message.toolCallId ?? '',
      isGiven,
    };
  });
}
