/** Family: the texts of a record as a trainer's conversation parser would see them. Pure. */
import type { TrainingRecord } from '../../shard/record.ts';
import { hasNul, hasThinkMarker, hasUnpairedSurrogate, isBlank } from '../text-problems.ts';
import type { FindingCode } from './codes.ts';

export function findInTexts(record: TrainingRecord): Set<FindingCode> {
  const found = new Set<FindingCode>();
  const prompts = record.messages.map((message) => message.content);
  const answers = record.turns.map((turn) => turn.text);
  const reasonings = record.turns.map((turn) => turn.reasoning);
  const all = [...prompts, ...answers, ...reasonings];
  // A tool call may come without any text.
  const isAnswerEmpty = record.turns.some((turn) => isBlank(turn.text) && turn.toolCalls.length === 0);
  if (prompts.some(isBlank) || isAnswerEmpty) found.add('empty-content');
  if ([...answers, ...reasonings].some(hasThinkMarker)) found.add('think-marker');
  if (all.some(hasUnpairedSurrogate)) found.add('unpaired-surrogate');
  if (all.some(hasNul)) found.add('nul-character');
  return found;
}
