/**
 * Record → conversation row: the prompt's messages with the answers between them. Pure.
 *
 * Shape: SpecForge's conversations; Automodel, DeepSpec, TorchSpec and AngelSlim take the same.
 * Promises: optional system messages first, then user and assistant in turn, an assistant last; `reasoning_content` on
 * every answer of a file or on none; no column besides the three (an extra one would reach the chat template).
 * Left out, with the reason: what SpecForge's validator refuses, because one bad row ends a trainer's run.
 */
import type { TrainingRecord } from '../shard/record.ts';
import { answerProblem, promptProblem, reasoningProblem, TEXT_PROBLEMS } from './text-problems.ts';

export interface ConversationMessage {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: string;
  /** '' where the model did not reason but others in the file did. */
  readonly reasoning_content?: string;
}

export interface ConversationRow {
  readonly id: string;
  readonly status: 'success';
  readonly conversations: readonly ConversationMessage[];
}

export const CONVERSATION_REASONS = [...TEXT_PROBLEMS, 'message-order', 'tool-call'] as const;
export type ConversationReason = (typeof CONVERSATION_REASONS)[number];

export interface ConversationRowOptions {
  readonly idPrefix: string;
  /** Does this file carry `reasoning_content`? */
  readonly withReasoning: boolean;
}

export type ConversationResult =
  | { readonly kind: 'row'; readonly row: ConversationRow }
  | { readonly kind: 'left-out'; readonly reason: ConversationReason };

export function hasReasoning(record: TrainingRecord): boolean {
  return record.turns.some((turn) => turn.reasoning !== '');
}

export function renderConversationRow(record: TrainingRecord, options: ConversationRowOptions): ConversationResult {
  const reason = conversationProblem(record);
  if (reason !== undefined) return { kind: 'left-out', reason };
  const conversations: ConversationMessage[] = [];
  let answered = 0;
  for (const { role, content } of record.messages) {
    conversations.push({ role: role === 'system' ? 'system' : 'user', content });
    if (role !== 'user') continue;
    const turn = record.turns[answered++];
    if (turn === undefined) continue; // conversationProblem has made sure that there is one
    conversations.push({
      role: 'assistant',
      content: turn.text,
      ...(options.withReasoning ? { reasoning_content: turn.reasoning } : {}),
    });
  }
  return { kind: 'row', row: { id: `${options.idPrefix}${record.id}`, status: 'success', conversations } };
}

/** The first reason why no trainer would take this conversation. */
export function conversationProblem(record: TrainingRecord): ConversationReason | undefined {
  if (!isOrdered(record)) return 'message-order';
  // The row has no place for calls: without them the answer reads as something the model did not say.
  if (record.turns.some((turn) => turn.toolCalls.length > 0)) return 'tool-call';
  for (const message of record.messages) {
    const problem = promptProblem(message.content);
    if (problem !== undefined) return problem;
  }
  for (const turn of record.turns) {
    const problem = answerProblem(turn.text) ?? reasoningProblem(turn.reasoning);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** System messages only before the first user message, nothing but users after, one answer for each of them. */
export function isOrdered(record: TrainingRecord): boolean {
  const firstUser = record.messages.findIndex((message) => message.role === 'user');
  if (firstUser < 0) return false;
  const rest = record.messages.slice(firstUser);
  const hasOnlySystemBefore = record.messages.slice(0, firstUser).every((message) => message.role === 'system');
  return hasOnlySystemBefore && rest.every((message) => message.role === 'user') && rest.length === record.turns.length;
}
