/**
 * One conversation: its turns in order. What a turn goes through is in `answer-turn.ts`; here its answers become turns
 * kept and, at the end, a record. The slot is kept between turns and given back at the last reply, before anything is
 * written. Nothing here touches a disk: turns, records and asides go to the committer.
 */
import { ASIDE_EXPLANATION, isContextReason } from '../base/aside-reason.ts';
import type { Prompt } from '../base/conversation.ts';
import { AerieError } from '../base/errors.ts';
import { hasTools } from '../engine/rendered-prompt.ts';
import type { Lease } from '../ledger/ledger.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { answerTokens } from '../shard/record.ts';
import { findNextTurn } from '../shard/walk-conversation.ts';
import { answerTurn, type Unanswerable } from './answer-turn.ts';
import { type Ending, idsAfter, idsThrough, type KeptTurn, makeRecord } from './conversation.ts';
import type { Conversing } from './conversing.ts';
import type { Slot } from './gate.ts';
import { type PromptSettings, settingsOf } from './prompt-settings.ts';
import type { AnswerCounts } from './tally.ts';

/** The slot is given back here at the latest. Resolves when the conversation is over for this worker. */
export async function converse(lease: Lease, prompt: Prompt, slot: Slot, context: Conversing): Promise<void> {
  let turns: readonly KeptTurn[] = lease.finishedTurns.map((body) => JSON.parse(body) as KeptTurn);
  let answered = turns.length;
  let before: readonly number[] = idsAfter(turns);
  let next = findNextTurn(prompt.messages, turns);
  const settings = settingsOf(context.run, lease.partition, lease.id);
  try {
    while (next.kind === 'ask') {
      const asked = { key: lease, messages: next.messages, tools: prompt.tools, settings, turns, before, slot };
      const end = await answerTurn(asked, context);
      if (end.kind === 'set-aside') endEarly({ lease, prompt, settings, turns, ending: 'context-full' }, end, context);
      if (end.kind !== 'answered') return;
      const turn = end.turn.take();
      const answers = [...turns, turn];
      next = findNextTurn(prompt.messages, answers);
      const isDropped = turn.finish === 'length' && dropsTruncated(context, lease.partition);
      if (next.kind === 'over' || isDropped) slot.leave();
      context.tally.answered(lease.partition, { ...countsOf([turn]), promptTokens: turn.usage.prompt });
      answered += 1;
      if (isDropped) return drop(lease, answers, end, context);
      if (next.kind === 'over')
        return keepRecord({ lease, prompt, settings, turns: answers, ending: endingOf(next) }, end, context);
      keepLastTurn(lease, answers, end, context);
      turns = answers;
      before = idsThrough(before, turn);
    }
  } finally {
    slot.leave();
    context.tally.left(lease.partition, lease.turns - answered);
  }
}

function endingOf({ isMissingToolResult }: { readonly isMissingToolResult: boolean }): Ending {
  return isMissingToolResult ? 'tool-result-missing' : 'whole';
}

function dropsTruncated({ run }: Conversing, partition: string): boolean {
  return run.partitions.some(({ name, truncated }) => name === partition && truncated === 'drop');
}

/** The answer was paid for, so its turn is finished first; in the same commit the prompt loses it. */
function drop(lease: Lease, turns: readonly KeptTurn[], by: Maker, context: Conversing): void {
  const { partition, id, fence } = lease;
  keepLastTurn(lease, turns, by, context);
  context.committer.addDrop({ partition, id, fence });
  context.tally.lost(partition, countsOf(turns));
}

function keepLastTurn(lease: Lease, turns: readonly KeptTurn[], by: Maker, { committer }: Conversing): void {
  const { partition, id, fence } = lease;
  const last = turns.slice(-1);
  const { tokens, truncated } = countsOf(last);
  const body = JSON.stringify(last[0]);
  committer.addTurn({ partition, id, fence, turn: turns.length - 1, tokens, truncated: truncated > 0, body, ...launchesOf(by) });
}

/** Who made the last answer, and the launches that made earlier pieces of it. */
interface Maker {
  readonly endpoint: Endpoint;
  readonly alsoBy?: readonly number[];
}

function launchesOf({ endpoint, alsoBy = [] }: Maker): { launch: number; alsoBy?: readonly number[] } {
  return { launch: endpoint.launch, ...(alsoBy.length > 0 ? { alsoBy } : {}) };
}

interface Finished {
  readonly lease: Lease;
  readonly prompt: Prompt;
  readonly settings: PromptSettings;
  readonly turns: readonly KeptTurn[];
  readonly ending: Ending;
}

function keepRecord(finished: Finished, by: Maker, context: Conversing): void {
  const { endpoint } = by;
  const { lease, prompt, settings, turns, ending } = finished;
  const record = makeRecord({
    ...{ prompt, partition: lease.partition, turns, ending, sampling: settings.sampling },
    exactness: context.rendered.exactness(endpoint, { hasTools: hasTools(prompt), extraBody: settings.extraBody }),
    provenance: context.provenanceOf(endpoint),
  });
  const { tokens, truncated } = countsOf(turns);
  const { partition, id, fence } = lease;
  context.committer.addRecord({
    record,
    row: { partition, id, fence, tokens, turns: turns.length, truncated, ...launchesOf(by) },
  });
  const { replaces } = lease;
  if (replaces !== undefined) context.tally.lost(partition, { ...replaces, answers: replaces.turns });
}

/**
 * A turn that will not be answered. Where only the context is full, the turns before it are a conversation of their own, and
 * are paid for: they become the record. A new attempt must not take the place of a record that may be longer.
 */
function endEarly(finished: Finished, end: Unanswerable, context: Conversing): void {
  const { lease, turns } = finished;
  const isFull = isContextReason(end.reason);
  if (isFull && turns.length > 0 && lease.replaces === undefined) keepRecord(finished, end, context);
  else if (isFull && context.isStrict) context.stop(promptRefused(lease, end));
  else setAside(lease, turns, end, context);
}

function promptRefused({ partition, id }: Lease, { reason, because }: Unanswerable): AerieError {
  return new AerieError('source.row-refused', `Prompt ${partition}/${id} is refused: ${reason}.`, {
    because,
    remedy: `${ASIDE_EXPLANATION[reason].next.replaceAll(' --retry-failed', '')}; or leave out --strict: such prompts are then set aside and counted.`,
    facts: { partition, id, reason },
  });
}

function setAside(
  lease: Lease,
  turns: readonly KeptTurn[],
  { reason, because }: Unanswerable,
  { committer, tally }: Conversing,
): void {
  const { partition, id, fence } = lease;
  // A new attempt that fails costs its prompt nothing: the record it should have replaced stays.
  const kind = lease.replaces === undefined ? 'prompt.set-aside' : 'prompt.kept';
  committer.addAside(
    { partition, id, fence, reason, because },
    { kind, subject: `${partition}/${id}`, facts: { reason, because } },
  );
  tally.lost(partition, countsOf(turns));
}

function countsOf(turns: readonly KeptTurn[]): AnswerCounts {
  return {
    answers: turns.length,
    tokens: turns.reduce((sum, turn) => sum + answerTokens(turn), 0),
    truncated: turns.filter(({ finish }) => finish === 'length').length,
  };
}
