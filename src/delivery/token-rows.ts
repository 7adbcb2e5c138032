/**
 * Record → token rows: the ids the engine saw and wrote, and a mask that is 1 exactly on what it wrote. Pure.
 *
 * Shape: SpecForge's pre-tokenized prompts and speculators' own regenerator (one file serves both).
 * Promises: one row per conversation where every turn's prompt begins with everything before it, else one row per turn;
 * the ones of a record's masks are as many as its output ids (`extendMask` adds one before each answer); keys and types are the same in every row, never null.
 * Left out, with the reason: records without ids, turns that teach nothing, ids no vocabulary can have.
 */
import { promptIdsOf, type RecordTurn, type TrainingRecord } from '../shard/record.ts';
import { replaceUnfit } from './text-problems.ts';

/**
 * Strings, whole numbers and booleans only: loaders infer column types from the first rows they see, and 1 and 0.6 in one
 * column are two types. What may be fractional (sampling) is JSON text in a string.
 */
export interface TokenRowMetadata {
  readonly partition: string;
  readonly record: string;
  /** Counted from 0: the turns this row teaches are `first_turn` … `first_turn + turns - 1`. */
  readonly first_turn: number;
  readonly turns: number;
  /** Of the last turn in the row. */
  readonly finish_reason: string;
  readonly is_truncated: boolean;
  readonly is_tool_call: boolean;
  readonly usage: { readonly prompt_tokens: number; readonly completion_tokens: number; readonly total_tokens: number };
  readonly sampling_params: string;
  readonly model: string;
  readonly engine: string;
}

export interface TokenRow {
  readonly id: string;
  readonly primary_id: string;
  readonly input_ids: readonly number[];
  readonly loss_mask: readonly number[];
  /** The answers, for people to read; trainers do not use it. */
  readonly text: string;
  readonly metadata: TokenRowMetadata;
}

export const TOKEN_ROW_REASONS = ['not-exact', 'no-output-ids', 'id-out-of-range'] as const;
export type TokenRowReason = (typeof TOKEN_ROW_REASONS)[number];

export interface TokenRows {
  readonly rows: readonly TokenRow[];
  /** One entry for each row that was not made. */
  readonly leftOut: readonly TokenRowReason[];
}

export interface TokenRowOptions {
  /** `B1/` where partitions are exported together: the same prompt may be in two of them. '' for one partition. */
  readonly idPrefix: string;
  /** 0 = unknown: then ids are only checked for being whole numbers ≥ 0. */
  readonly vocabularySize: number;
  /**
   * Supervise the token before each answer too. SpecForge shifts ids and targets by one and the mask not, so that the
   * position from which the first token of an answer is guessed is otherwise never trained (its issue 885).
   */
  readonly extendMask: boolean;
}

interface Segment {
  readonly promptIds: readonly number[];
  readonly outputIds: readonly number[];
}

export function renderTokenRows(record: TrainingRecord, options: TokenRowOptions): TokenRows {
  if (!record.exact) return { rows: [], leftOut: ['not-exact'] };
  const groups = continuesThroughout(record.turns) ? [wholeConversation(record)] : eachTurn(record);
  const rows: TokenRow[] = [];
  const leftOut: TokenRowReason[] = [];
  for (const group of groups) {
    const row = renderRow(
      { record, group, id: `${options.idPrefix}${record.id}_gen${rows.length + leftOut.length}` },
      options.extendMask,
    );
    const problem = rowProblem(row, options.vocabularySize);
    if (problem === undefined) rows.push(row);
    else leftOut.push(problem);
  }
  return { rows, leftOut };
}

/** Does every turn's prompt begin with the whole of the turn before, so that the conversation is one sequence? */
export function continuesThroughout(turns: readonly RecordTurn[]): boolean {
  let before = 0;
  return turns.every((turn) => {
    const isNext = turn.continues === before;
    before = turn.continues + turn.promptIds.length + turn.outputIds.length;
    return isNext;
  });
}

interface Group {
  readonly firstTurn: number;
  readonly turns: readonly RecordTurn[];
  readonly segments: readonly Segment[];
}

function wholeConversation(record: TrainingRecord): Group {
  return { firstTurn: 0, turns: record.turns, segments: record.turns };
}

function eachTurn(record: TrainingRecord): Group[] {
  const prompts = promptIdsOf(record.turns);
  return record.turns.map((turn, index) => ({
    firstTurn: index,
    turns: [turn],
    segments: [{ promptIds: prompts[index] ?? [], outputIds: turn.outputIds }],
  }));
}

function renderRow(
  input: { readonly record: TrainingRecord; readonly group: Group; readonly id: string },
  extendMask: boolean,
): TokenRow {
  const { record, group } = input;
  const ids: number[] = [];
  const mask: number[] = [];
  for (const segment of group.segments) {
    for (const id of segment.promptIds) {
      ids.push(id);
      mask.push(0);
    }
    if (extendMask && mask.length > 0 && segment.outputIds.length > 0) mask[mask.length - 1] = 1;
    for (const id of segment.outputIds) {
      ids.push(id);
      mask.push(1);
    }
  }
  return {
    id: input.id,
    primary_id: record.id,
    input_ids: ids,
    loss_mask: mask,
    text: replaceUnfit(group.turns.map((turn) => turn.text).join('\n\n')),
    metadata: renderMetadata(record, group, ids.length),
  };
}

function renderMetadata(record: TrainingRecord, group: Group, length: number): TokenRowMetadata {
  const completion = group.turns.reduce((sum, turn) => sum + turn.outputIds.length, 0);
  const { temperature, topP, topK, maxTokens, seed } = record.sampling;
  return {
    partition: record.partition,
    record: record.id,
    first_turn: group.firstTurn,
    turns: group.turns.length,
    finish_reason: group.turns.at(-1)?.finish ?? '',
    is_truncated: group.turns.some((turn) => turn.finish === 'length'),
    is_tool_call: group.turns.some((turn) => turn.toolCalls.length > 0),
    usage: { prompt_tokens: length - completion, completion_tokens: completion, total_tokens: length },
    sampling_params: JSON.stringify({ temperature, top_p: topP, top_k: topK, max_tokens: maxTokens, seed }),
    model: record.provenance.model,
    engine: record.provenance.engine,
  };
}

function rowProblem(row: TokenRow, vocabularySize: number): TokenRowReason | undefined {
  if (row.metadata.usage.completion_tokens === 0) return 'no-output-ids';
  const limit = vocabularySize === 0 ? Number.MAX_SAFE_INTEGER : vocabularySize;
  return row.input_ids.every((id) => isIdBelow(id, limit)) ? undefined : 'id-out-of-range';
}

/** Trainers do not check this: a negative or too large id indexes past their embedding table, hours later, on the GPU. */
export function isIdBelow(id: unknown, limit: number): id is number {
  return typeof id === 'number' && Number.isSafeInteger(id) && id >= 0 && id < limit;
}
