/**
 * The record: one finished training example, one JSON line in a shard. Keys and types are constant over all
 * records, never null and never absent, because trainers' loaders infer column types from the first rows they see.
 */
import type { Message, ToolCall } from '../base/conversation.ts';
import type { Sampling } from '../base/sampling.ts';

export const FINISHES = ['stop', 'length', 'tool-calls'] as const;
/** Why the engine ended a turn. `length`: the cap was reached, so the answer is truncated. */
export type Finish = (typeof FINISHES)[number];

export interface Usage {
  readonly prompt: number;
  readonly completion: number;
  /** Prompt tokens the engine reused from its cache, 0 where it does not say. */
  readonly cached: number;
}

export interface RecordTurn {
  /**
   * 0, or the length of the previous turn's whole prompt + output: then this turn's prompt begins with exactly those
   * ids and `promptIds` holds only the rest (else the size of a record is quadratic in its turns).
   */
  readonly continues: number;
  /** Prompt token ids as the engine used them, after the first `continues`. Empty where the server gives only text. */
  readonly promptIds: readonly number[];
  /** Generated token ids, the stop id included where the engine produced one. Empty where the server gives only text. */
  readonly outputIds: readonly number[];
  readonly endsWithStopId: boolean;
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finish: Finish;
  readonly usage: Usage;
  readonly seed: number;
  /** Name of the server that answered. */
  readonly server: string;
}

/** `unparsed-call`: an answer's text has what opens a tool call; nobody could read it. `tool-result-missing`, `context-full`: the conversation ends before its last turn; a result is not in the source, or the next turn has no room. */
export const RECORD_FLAGS = [
  'truncated',
  'history-retokenised',
  'empty-answer',
  'tool-result-missing',
  'context-full',
  'continued',
  'unparsed-call',
] as const;
export type RecordFlag = (typeof RECORD_FLAGS)[number];

export interface Provenance {
  readonly model: string;
  readonly revision: string;
  readonly engine: string;
  readonly engineVersion: string;
  /** Weight format, e.g. `Q4_1`, `bf16`. */
  readonly weights: string;
  readonly kvCacheDtype: string;
  /** sha256 of the chat template's text, '' where the server does not show it. */
  readonly templateHash: string;
  /** Id of the launch row in the ledger. */
  readonly launch: number;
  readonly aerie: string;
}

export interface TrainingRecord {
  readonly v: 1;
  readonly id: string;
  readonly partition: string;
  /** The prompt as it was asked; the answers are in `turns` (`walk-conversation.ts` puts them together). */
  readonly messages: readonly Message[];
  /** Tool definitions, each as its JSON text. */
  readonly tools: readonly string[];
  readonly turns: readonly RecordTurn[];
  /** Token ids of every turn came from the engine. */
  readonly exact: boolean;
  readonly inexactBecause: string;
  readonly flags: readonly RecordFlag[];
  readonly sampling: Sampling;
  readonly provenance: Provenance;
}

/** Tokens of an answer: its ids, or the server's own count where it gives only text. */
export function answerTokens({ outputIds, usage }: Pick<RecordTurn, 'outputIds' | 'usage'>): number {
  return outputIds.length > 0 ? outputIds.length : usage.completion;
}

/** The whole prompt of each turn, with what `continues` left out put back. */
export function promptIdsOf(turns: readonly RecordTurn[]): number[][] {
  const prompts: number[][] = [];
  let before: readonly number[] = [];
  for (const turn of turns) {
    const prompt = [...before.slice(0, turn.continues), ...turn.promptIds];
    prompts.push(prompt);
    before = [...prompt, ...turn.outputIds];
  }
  return prompts;
}
