/** One conversation's arithmetic: what is asked for a turn, what a reply becomes, what the record is. Pure. */
import type { Prompt } from '../base/conversation.ts';
import type { Sampling } from '../base/sampling.ts';
import type { Exactness, Reply } from '../engine/dialect.ts';
import { looksLikeCall } from '../engine/raw-answer.ts';
import type { Provenance, RecordFlag, RecordTurn, TrainingRecord } from '../shard/record.ts';

/** A turn as the ledger keeps it. A record says in a flag that an answer came in several pieces. */
export interface KeptTurn extends RecordTurn {
  /** Requests that the answer took, where it was continued. */
  readonly pieces?: number;
}

/** A verified reply as a turn of a record. `before` = prompt + output ids of the turn before, empty for the first. */
export function makeTurn(reply: Reply, before: readonly number[], seed: number, server: string): RecordTurn {
  const continues = before.length > 0 && startsWith(reply.promptIds, before) ? before.length : 0;
  return {
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
}

/** Prompt + output of the last of these turns: what the next turn's prompt should begin with. */
export function idsAfter(turns: readonly RecordTurn[]): number[] {
  let ids: number[] = [];
  for (const turn of turns) ids = idsThrough(ids, turn);
  return ids;
}

/** Prompt + output of a turn; `before` = those of the turn before. */
export function idsThrough(before: readonly number[], { continues, promptIds, outputIds }: RecordTurn): number[] {
  return [...before.slice(0, continues), ...promptIds, ...outputIds];
}

/** How a conversation came to its end: with its last turn; or early, and its record is flagged so. */
export type Ending = 'whole' | Extract<RecordFlag, 'tool-result-missing' | 'context-full'>;

export interface RecordParts {
  readonly prompt: Prompt;
  readonly partition: string;
  readonly turns: readonly KeptTurn[];
  readonly ending: Ending;
  readonly exactness: Pick<Exactness, 'exact' | 'because'>;
  readonly sampling: Sampling;
  readonly provenance: Provenance;
}

export function makeRecord(parts: RecordParts): TrainingRecord {
  const inexactBecause = whyInexact(parts);
  return {
    v: 1,
    id: parts.prompt.id,
    partition: parts.partition,
    messages: parts.prompt.messages,
    tools: parts.prompt.tools,
    turns: parts.turns,
    exact: inexactBecause === '',
    inexactBecause,
    flags: flagsOf(parts, inexactBecause === ''),
    sampling: parts.sampling,
    provenance: parts.provenance,
  };
}

/** '' where every turn has its ids. Turns may have been answered by servers that are not alike, the last one exact. */
function whyInexact({ turns, exactness }: RecordParts): string {
  if (!exactness.exact) return exactness.because;
  const silent = turns.findIndex(({ outputIds }) => outputIds.length === 0);
  return silent === -1 ? '' : `${turns[silent]?.server ?? 'a server'} gave turn ${silent + 1} as text, without token ids`;
}

function flagsOf({ prompt, turns, ending }: RecordParts, isExact: boolean): RecordFlag[] {
  const flags: RecordFlag[] = [];
  if (turns.some(({ finish }) => finish === 'length')) flags.push('truncated');
  if (isExact && turns.some((turn, at) => at > 0 && turn.continues === 0)) flags.push('history-retokenised');
  if (turns.some(({ text, toolCalls }) => text.trim() === '' && toolCalls.length === 0)) flags.push('empty-answer');
  if (ending !== 'whole') flags.push(ending);
  if (turns.some(({ pieces }) => pieces !== undefined)) flags.push('continued');
  if (prompt.tools.length > 0 && turns.some(({ text }) => looksLikeCall(text))) flags.push('unparsed-call');
  return flags;
}

function startsWith(ids: readonly number[], beginning: readonly number[]): boolean {
  if (beginning.length > ids.length) return false;
  for (let at = 0; at < beginning.length; at++) if (ids[at] !== beginning[at]) return false;
  return true;
}
