/** Family: how the turns of a record hang together, and whether its flags say so. Pure. */
import type { TrainingRecord } from '../../shard/record.ts';
import { findNextTurn } from '../../shard/walk-conversation.ts';
import { continuesThroughout } from '../token-rows.ts';
import type { FindingCode } from './codes.ts';

export function findInTurns(record: TrainingRecord): Set<FindingCode> {
  const found = new Set<FindingCode>();
  for (const code of findInOrder(record)) found.add(code);
  const isTruncated = record.turns.some((turn) => turn.finish === 'length');
  if (isTruncated) found.add('truncated');
  if (isTruncated !== record.flags.includes('truncated')) found.add('flags-differ');
  const isAnswerEmpty = record.turns.some((turn) => turn.text.trim() === '' && turn.toolCalls.length === 0);
  if (isAnswerEmpty !== record.flags.includes('empty-answer')) found.add('flags-differ');
  if (!record.exact) {
    found.add('not-exact');
    if (record.inexactBecause === '') found.add('flags-differ');
    return found;
  }
  if (record.inexactBecause !== '') found.add('flags-differ');
  for (const code of findInContinuation(record)) found.add(code);
  return found;
}

function findInContinuation(record: TrainingRecord): FindingCode[] {
  const isFlagged = record.flags.includes('history-retokenised');
  // A turn may begin anew or continue the whole; anything between is no prompt that an engine was sent.
  if (!everyTurnIsWholeOrNew(record)) return ['turn-does-not-continue'];
  if (continuesThroughout(record.turns)) return isFlagged ? ['flags-differ'] : [];
  if (!isFlagged) return ['turn-does-not-continue'];
  return [record.turns.slice(0, -1).some(({ reasoning }) => reasoning !== '') ? 'history-stripped' : 'history-retokenised'];
}

/** System messages only at the beginning, a user after them, and exactly the answers that the conversation asks for. */
function findInOrder(record: TrainingRecord): FindingCode[] {
  const { messages, turns, flags } = record;
  const first = messages.findIndex(({ role }) => role !== 'system');
  const isOpened = messages[first]?.role === 'user' && messages.slice(first).every(({ role }) => role !== 'system');
  const end = findNextTurn(messages, turns);
  const isFull = flags.includes('context-full');
  if (!isOpened || findNextTurn(messages, turns.slice(0, -1)).kind === 'over') return ['message-order'];
  if (end.kind === 'ask') return isFull && turns.length > 0 ? ['context-full'] : ['message-order'];
  if (isFull || end.isMissingToolResult !== flags.includes('tool-result-missing')) return ['flags-differ'];
  return end.isMissingToolResult ? ['tool-result-missing'] : [];
}

function everyTurnIsWholeOrNew(record: TrainingRecord): boolean {
  let before = 0;
  return record.turns.every((turn) => {
    const isSound = turn.continues === 0 || turn.continues === before;
    before = turn.continues + turn.promptIds.length + turn.outputIds.length;
    return isSound;
  });
}
