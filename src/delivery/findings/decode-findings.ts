/**
 * Family: do the ids say what the text says? Pure but for the decoder it is given.
 *
 * The ids without a stop id at the end are decoded and compared with the engine's text, special tokens kept or left out
 * (engines leave them out); only U+FFFD at the very end may differ (an answer cut inside a character). A special token
 * inside an answer is a finding of its own. Where the engine has split reasoning or tool calls off, the markers between (control
 * tokens, for some models) are gone from the text, so the parts must occur in the decoded text, spaces at their ends aside.
 */
import type { RecordTurn, TrainingRecord } from '../../shard/record.ts';
import { agreesWithText, type Decoder } from '../../tokens/decoder.ts';
import type { CheckFacts } from './codes.ts';

export interface DecodeCount {
  /** Answers that were decoded. */
  readonly rows: number;
  readonly differing: number;
}

export type AnswerDecoder = Pick<Decoder, 'decode' | 'isSpecial'>;

export function countDecodeDifferences(record: TrainingRecord, facts: CheckFacts, decoder: AnswerDecoder): DecodeCount {
  if (!record.exact) return { rows: 0, differing: 0 };
  const differing = record.turns.filter(
    (turn) => !agrees(turn, withoutStop(turn, facts.stopIds), decoder) && !isCutAtStop(turn, record.sampling.stop, decoder),
  ).length;
  return { rows: record.turns.length, differing };
}

/** Engines leave a stop text, and what its last token holds beyond it, out of the text and never out of the ids. */
function isCutAtStop(turn: RecordTurn, stopTexts: readonly string[], decoder: AnswerDecoder): boolean {
  if (stopTexts.length === 0 || turn.finish !== 'stop') return false;
  const decoded = decoder.decode(turn.outputIds);
  return stopTexts.some((stop) => decoded.includes(stop) && agreesWithText(decoded.slice(0, decoded.indexOf(stop)), turn.text));
}

/**
 * Does an answer hold a special token that is not its end? A conversation row does not show it, a token row does. Where the
 * engine has split an answer, they are the marks that it split at, and rows show the parts.
 */
export function hasSpecialInside(record: TrainingRecord, facts: CheckFacts, decoder: AnswerDecoder): boolean {
  const whole = record.turns.filter((turn) => !isSplit(turn));
  return record.exact && whole.some((turn) => withoutStop(turn, facts.stopIds).some((id) => decoder.isSpecial(id)));
}

function withoutStop(turn: RecordTurn, stopIds: readonly number[]): readonly number[] {
  const last = turn.outputIds.at(-1);
  const endsWithStop = last !== undefined && (stopIds.length > 0 ? stopIds.includes(last) : turn.endsWithStopId);
  return endsWithStop ? turn.outputIds.slice(0, -1) : turn.outputIds;
}

function agrees(turn: RecordTurn, ids: readonly number[], decoder: AnswerDecoder): boolean {
  const decoded = decoder.decode(ids);
  if (isSplit(turn)) {
    return [turn.reasoning, turn.text].every((part) => decoded.includes(part.trim().replace(/\uFFFD+$/u, '')));
  }
  return (
    agreesWithText(decoded, turn.text) || agreesWithText(decoder.decode(ids.filter((id) => !decoder.isSpecial(id))), turn.text)
  );
}

function isSplit({ reasoning, toolCalls }: RecordTurn): boolean {
  return reasoning !== '' || toolCalls.length > 0;
}
