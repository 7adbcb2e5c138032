/** Family: the ids of an exact record — their range, their number, their length, how an answer ends, whether it loops. Pure. */
import type { RecordTurn, TrainingRecord } from '../../shard/record.ts';
import { isIdBelow } from '../token-rows.ts';
import type { CheckFacts, FindingCode } from './codes.ts';
import { hasLoop } from './repetition.ts';
import { hashWord, wordsOf } from './words.ts';

export function findInTokens(record: TrainingRecord, facts: CheckFacts): Set<FindingCode> {
  const found = new Set<FindingCode>();
  if (!record.exact) return found;
  const limit = facts.vocabularySize === 0 ? Number.MAX_SAFE_INTEGER : facts.vocabularySize;
  for (const turn of record.turns) {
    const promptLength = turn.continues + turn.promptIds.length;
    const outputLength = turn.outputIds.length;
    const isInRange = (id: number) => isIdBelow(id, limit);
    if (!turn.promptIds.every(isInRange) || !turn.outputIds.every(isInRange)) found.add('id-out-of-range');
    if (promptLength === 0 || outputLength === 0) found.add('ids-missing');
    if (turn.usage.prompt !== promptLength || turn.usage.completion !== outputLength) found.add('usage-differs');
    if (facts.contextTokens > 0 && promptLength + outputLength > facts.contextTokens) found.add('longer-than-context');
    if (facts.stopIds.length > 0) for (const code of findInEnding(turn, facts.stopIds, record.sampling.stop)) found.add(code);
  }
  return found;
}

/** Does an answer run in a loop? By ids; without them the words must do. */
export function isLooping({ exact, turns }: TrainingRecord): boolean {
  return turns.some(({ outputIds, text }) => hasLoop(exact ? outputIds : wordsOf(text).map((word) => hashWord(word))));
}

/** A stop id at the end if and only if the engine says that the answer stopped; a tool call or a stop text may end it too. */
function findInEnding(turn: RecordTurn, stopIds: readonly number[], stopTexts: readonly string[]): FindingCode[] {
  const last = turn.outputIds.at(-1);
  const endsWithStopId = last !== undefined && stopIds.includes(last);
  if (turn.finish === 'stop' && !endsWithStopId && stopTexts.length === 0) return ['stop-id-missing'];
  const isUnexpected = turn.finish === 'length' && endsWithStopId;
  return isUnexpected || turn.endsWithStopId !== endsWithStopId ? ['stop-id-unexpected'] : [];
}
