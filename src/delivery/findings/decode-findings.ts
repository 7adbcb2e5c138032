/**
 * Family: do the ids say what the text says? Pure but for the decoder it is given.
 *
 * The ids without a stop id at the end are decoded with special tokens kept and compared with the engine's text; only
 * U+FFFD at the very end may differ (an answer cut inside a character). Where the engine has split reasoning or tool
 * calls off, the markers between are gone, so the parts must occur in the decoded text, spaces at their ends aside.
 */
import type { RecordTurn, TrainingRecord } from '../../shard/record.ts';
import { agreesWithText, type Decoder } from '../../tokens/decoder.ts';
import type { CheckFacts } from './codes.ts';

export interface DecodeCount {
  /** Answers that were decoded. */
  readonly rows: number;
  readonly differing: number;
}

export function countDecodeDifferences(record: TrainingRecord, facts: CheckFacts, decoder: Pick<Decoder, 'decode'>): DecodeCount {
  if (!record.exact) return { rows: 0, differing: 0 };
  const differing = record.turns.filter((turn) => !agrees(turn, decoder.decode(withoutStop(turn, facts.stopIds)))).length;
  return { rows: record.turns.length, differing };
}

function withoutStop(turn: RecordTurn, stopIds: readonly number[]): readonly number[] {
  const last = turn.outputIds.at(-1);
  const endsWithStop = last !== undefined && (stopIds.length > 0 ? stopIds.includes(last) : turn.endsWithStopId);
  return endsWithStop ? turn.outputIds.slice(0, -1) : turn.outputIds;
}

function agrees(turn: RecordTurn, decoded: string): boolean {
  if (turn.reasoning === '' && turn.toolCalls.length === 0) return agreesWithText(decoded, turn.text);
  return [turn.reasoning, turn.text].every((part) => decoded.includes(part.trim().replace(/\uFFFD+$/u, '')));
}
