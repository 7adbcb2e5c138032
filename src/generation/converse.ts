/**
 * One conversation: its turns in order. What a turn goes through is in `answer-turn.ts`; here its answers become turns
 * kept and, at the end, a record. The slot is kept between turns and given back at the last reply, before anything is
 * written. Nothing here touches a disk: turns, records and asides go to the committer.
 */
import type { Prompt } from '../base/conversation.ts';
import type { Lease } from '../ledger/ledger.ts';
import type { RecordTurn } from '../shard/record.ts';
import { renderRecord } from '../shard/render-record.ts';
import { type Answered, answerTurn } from './answer-turn.ts';
import { idsAfter, makeRecord, turnsOf } from './conversation.ts';
import type { Conversing } from './conversing.ts';
import type { Slot } from './gate.ts';
import type { AnswerCounts } from './tally.ts';

/** The slot is given back here at the latest. Resolves when the conversation is over for this worker. */
export async function converse(lease: Lease, prompt: Prompt, slot: Slot, context: Conversing): Promise<void> {
  const turns = lease.finishedTurns.map((body) => JSON.parse(body) as RecordTurn);
  const asked = turnsOf(prompt);
  let before: readonly number[] = idsAfter(turns);
  try {
    while (turns.length < asked) {
      const end = await answerTurn({ key: lease, prompt, turns, before, slot }, context);
      if (end.kind === 'set-aside') setAside(lease, turns, end.because, context);
      if (end.kind !== 'answered') return;
      turns.push(end.turn);
      before = end.ids;
      const isLast = turns.length === asked;
      if (isLast) slot.leave();
      context.tally.answered(lease.partition, countsOf([end.turn]));
      if (isLast) keepRecord(lease, prompt, turns, { answered: end, context });
      else keepTurn(lease, turns.length - 1, end, context);
    }
  } finally {
    slot.leave();
    context.tally.left(lease.partition, asked - turns.length);
  }
}

function keepTurn(lease: Lease, turn: number, answered: Answered, { committer }: Conversing): void {
  const { tokens, truncated } = countsOf([answered.turn]);
  committer.addTurn({
    ...{ partition: lease.partition, id: lease.id, fence: lease.fence, turn, tokens, truncated: truncated > 0 },
    body: JSON.stringify(answered.turn),
    launch: answered.endpoint.launch,
  });
}

function keepRecord(
  lease: Lease,
  prompt: Prompt,
  turns: readonly RecordTurn[],
  { answered, context }: { readonly answered: Answered; readonly context: Conversing },
): void {
  const { endpoint } = answered;
  const record = makeRecord({
    ...{ prompt, partition: lease.partition, turns, sampling: context.run.sampling },
    exactness: endpoint.dialect.exactness(endpoint.facts),
    provenance: context.provenanceOf(endpoint),
  });
  const { tokens, truncated } = countsOf(turns);
  const { partition, id, fence } = lease;
  context.committer.addRecord({
    line: renderRecord(record),
    row: { partition, id, fence, tokens, turns: turns.length, truncated, launch: endpoint.launch },
  });
}

function setAside(lease: Lease, turns: readonly RecordTurn[], because: string, { committer, tally }: Conversing): void {
  const { partition, id, fence } = lease;
  committer.addAside(
    { partition, id, fence, because },
    { kind: 'prompt.set-aside', subject: `${partition}/${id}`, facts: { because } },
  );
  tally.setAside(partition, countsOf(turns));
}

function countsOf(turns: readonly RecordTurn[]): AnswerCounts {
  return {
    answers: turns.length,
    tokens: turns.reduce((sum, { outputIds }) => sum + outputIds.length, 0),
    truncated: turns.filter(({ finish }) => finish === 'length').length,
  };
}
