/** One conversation's arithmetic: what is asked for a turn, what a reply becomes, what the record is. Pure. */
import type { Message, Prompt } from '../base/conversation.ts';
import type { Sampling } from '../base/sampling.ts';
import type { Exactness, Reply } from '../engine/dialect.ts';
import type { Provenance, RecordFlag, RecordTurn, TrainingRecord } from '../shard/record.ts';

/** How many answers the prompt asks for: one per user message. */
export function turnsOf(prompt: Prompt): number {
  return prompt.messages.filter(({ role }) => role === 'user').length;
}

/**
 * The messages that turn `turn` (from 0) sends: everything up to its user message, each earlier user message followed
 * by the model's own answer. Reasoning is not fed back, as the chat templates of thinking models expect.
 */
export function messagesForTurn(prompt: Prompt, answers: readonly RecordTurn[], turn: number): Message[] {
  const messages: Message[] = [];
  let asked = 0;
  for (const message of prompt.messages) {
    messages.push(message);
    if (message.role !== 'user') continue;
    if (asked === turn) return messages;
    const answer = answers[asked];
    if (answer === undefined) return messages;
    messages.push({ role: 'assistant', content: answer.text });
    asked += 1;
  }
  return messages;
}

export interface TurnMade {
  readonly turn: RecordTurn;
  /** Prompt + output of this turn: what the next turn's prompt should begin with. */
  readonly ids: readonly number[];
}

/** A verified reply as a turn of a record. `before` = prompt + output ids of the turn before, empty for the first. */
export function makeTurn(reply: Reply, before: readonly number[], seed: number, server: string): TurnMade {
  const continues = before.length > 0 && startsWith(reply.promptIds, before) ? before.length : 0;
  const turn: RecordTurn = {
    continues,
    promptIds: reply.promptIds.slice(continues),
    outputIds: reply.outputIds,
    endsWithStopId: reply.endsWithStopId,
    text: reply.text,
    reasoning: reply.reasoning,
    toolCalls: reply.toolCalls,
    finish: reply.finish,
    usage: reply.usage,
    seed,
    server,
  };
  return { turn, ids: [...reply.promptIds, ...reply.outputIds] };
}

/** Prompt + output of the last of these turns. */
export function idsAfter(turns: readonly RecordTurn[]): number[] {
  let ids: number[] = [];
  for (const turn of turns) ids = [...ids.slice(0, turn.continues), ...turn.promptIds, ...turn.outputIds];
  return ids;
}

export interface RecordParts {
  readonly prompt: Prompt;
  readonly partition: string;
  readonly turns: readonly RecordTurn[];
  readonly exactness: Exactness;
  readonly sampling: Sampling;
  readonly provenance: Provenance;
}

export function makeRecord(parts: RecordParts): TrainingRecord {
  return {
    v: 1,
    id: parts.prompt.id,
    partition: parts.partition,
    messages: parts.prompt.messages,
    tools: parts.prompt.tools,
    turns: parts.turns,
    exact: parts.exactness.exact,
    inexactBecause: parts.exactness.because,
    flags: flagsOf(parts.turns),
    sampling: parts.sampling,
    provenance: parts.provenance,
  };
}

function flagsOf(turns: readonly RecordTurn[]): RecordFlag[] {
  const flags: RecordFlag[] = [];
  if (turns.some(({ finish }) => finish === 'length')) flags.push('truncated');
  if (turns.some((turn, at) => at > 0 && turn.continues === 0)) flags.push('history-retokenised');
  if (turns.some(({ text, toolCalls }) => text.trim() === '' && toolCalls.length === 0)) flags.push('empty-answer');
  return flags;
}

function startsWith(ids: readonly number[], beginning: readonly number[]): boolean {
  if (beginning.length > ids.length) return false;
  for (let at = 0; at < beginning.length; at++) if (ids[at] !== beginning[at]) return false;
  return true;
}
