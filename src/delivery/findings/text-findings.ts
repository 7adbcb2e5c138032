/** Family: the texts of a record as a trainer's conversation parser would see them. Pure. */
import type { TrainingRecord } from '../../shard/record.ts';
import { hasNul, hasThinkMarker, hasUnpairedSurrogate, isBlank } from '../text-problems.ts';
import type { FindingCode } from './codes.ts';
import { isRefusal } from './refusals.ts';
import { hasTemplateMarker } from './template-markers.ts';

/** `specialTexts`: of the run's own tokenizer, where there is one. */
export function findInTexts(record: TrainingRecord, specialTexts: readonly string[] = []): Set<FindingCode> {
  const found = new Set<FindingCode>();
  const prompts = record.messages.map((message) => message.content);
  const answers = record.turns.map((turn) => turn.text);
  const reasonings = record.turns.map((turn) => turn.reasoning);
  const all = [...prompts, ...answers, ...reasonings];
  // A tool call may come without any text, and a tool may have nothing to say.
  const isPromptEmpty = record.messages.some(
    ({ role, content, toolCalls = [] }) => isBlank(content) && role !== 'tool' && toolCalls.length === 0,
  );
  const isAnswerEmpty = record.turns.some((turn) => isBlank(turn.text) && turn.toolCalls.length === 0);
  if (isPromptEmpty || isAnswerEmpty) found.add('empty-content');
  if ([...answers, ...reasonings].some(hasThinkMarker)) found.add('think-marker');
  if (all.some(hasUnpairedSurrogate)) found.add('unpaired-surrogate');
  if (all.some(hasNul)) found.add('nul-character');
  if (all.some((text) => hasTemplateMarker(text, specialTexts))) found.add('template-marker');
  if (answers.some(isRefusal)) found.add('refusal');
  return found;
}
