/** Family: what is left of a token row after a trainer has cut it at its own length. Pure. */
import type { TrainingRecord } from '../../shard/record.ts';
import { continuesThroughout } from '../token-rows.ts';
import type { CheckFacts, FindingCode } from './codes.ts';

/**
 * Trainers cut rows without a word. The answers that Aerie is made for have 4,000 tokens and more, so a trainer of such data
 * is set to twice that at least; `--max-length` says what it is really set to.
 */
export const DEFAULT_MAX_LENGTH = 8192;

export function findInLengths(record: TrainingRecord, facts: CheckFacts): Set<FindingCode> {
  const found = new Set<FindingCode>();
  if (!record.exact) return found;
  const limit = facts.maxLength ?? DEFAULT_MAX_LENGTH;
  const isOneRow = continuesThroughout(record.turns);
  record.turns.forEach((turn, index) => {
    const promptLength = turn.continues + turn.promptIds.length;
    // One row for the conversation is supervised from its first answer on; else each turn must stand alone.
    if (promptLength >= limit && (index === 0 || !isOneRow)) found.add('supervision-cut');
    else if (promptLength + turn.outputIds.length > limit) found.add('row-cut');
  });
  return found;
}
