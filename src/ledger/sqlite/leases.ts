/**
 * Leases: waiting → leased and back. The fence of a prompt rises by one with every lease, so work done under an older
 * lease can be told from work done under this one. All functions run inside a transaction.
 */
import { bug } from '../../base/errors.ts';
import type { Lease, PromptKey } from '../ledger.ts';
import type { Database } from './database.ts';
import { CounterChanges, partitionOrdinal } from './partitions.ts';
import { number, type Row, text } from './row.ts';
import { liveCounts } from './superseding.ts';
import { restartConversations } from './withdrawing.ts';

const TAKE = "UPDATE prompts SET state = 'leased', fence = fence + 1 WHERE ordinal IN";
const GIVE = 'RETURNING ordinal, id, offset, bytes, turns, fence, answered, round, replaces';

export function leasePrompts(
  database: Database,
  request: { readonly partition: string; readonly n: number; readonly onlyUnfinished: boolean },
): readonly Lease[] {
  const partition = partitionOrdinal(database, request.partition);
  const begun = request.onlyUnfinished ? 'AND begun = 1' : '';
  const rows = database.all(
    `${TAKE} (SELECT ordinal FROM prompts WHERE partition = :partition AND state = 'waiting' ${begun}
              ORDER BY begun DESC, ordinal LIMIT :n) ${GIVE}`,
    { partition, n: request.n },
  );
  if (rows.length === 0) return [];
  const changes = new CounterChanges(database);
  changes.add(partition, { waiting: -rows.length, leased: rows.length });
  changes.write();
  // RETURNING promises no order.
  return rows.toSorted(byTurnOfWork).map((row) => toLease(database, request.partition, row));
}

export function giveLeasesBack(database: Database, keys: readonly (PromptKey & { readonly fence: number })[]): void {
  const changes = new CounterChanges(database);
  for (const key of keys) {
    const partition = changes.ordinalOf(key.partition);
    const { changes: given } = database.run(
      `UPDATE prompts SET state = 'waiting' WHERE partition = :partition AND id = :id AND state = 'leased' AND fence = :fence`,
      { partition, id: key.id, fence: key.fence },
    );
    if (given !== 1) throw staleFence(key);
    changes.add(partition, { waiting: 1, leased: -1 });
  }
  changes.write();
  restartConversations(database);
}

/** The counter and the rows it counts must agree; they are changed together everywhere. */
export function releaseAllLeases(database: Database): number {
  const { changes: released } = database.run(`UPDATE prompts SET state = 'waiting' WHERE state = 'leased'`);
  const row = database.get('SELECT coalesce(sum(leased), 0) AS leased FROM partitions');
  const counted = row === undefined ? 0 : number(row, 'leased');
  if (counted !== released) throw bug(`${released} prompts were leased and the counters say ${counted}.`, { released, counted });
  if (released > 0) database.run('UPDATE partitions SET waiting = waiting + leased, leased = 0 WHERE leased > 0');
  restartConversations(database);
  return released;
}

export function staleFence(key: PromptKey & { readonly fence: number }): Error {
  return bug(`Prompt ${key.id} of partition ${key.partition} is not leased with fence ${key.fence}; nothing was written.`, {
    partition: key.partition,
    id: key.id,
    fence: key.fence,
  });
}

/** Begun conversations and new attempts first, then the order of the source. */
function byTurnOfWork(a: Row, b: Row): number {
  const isBegun = (row: Row) => (number(row, 'answered') > 0 || number(row, 'replaces') === 1 ? 1 : 0);
  const begun = isBegun(b) - isBegun(a);
  return begun === 0 ? number(a, 'ordinal') - number(b, 'ordinal') : begun;
}

function finishedTurns(database: Database, row: Row): readonly string[] {
  if (number(row, 'answered') === 0) return [];
  const turns = database.all('SELECT body FROM turns WHERE prompt = :prompt ORDER BY turn', { prompt: number(row, 'ordinal') });
  return turns.map((turn) => text(turn, 'body'));
}

function toLease(database: Database, partition: string, row: Row): Lease {
  const replaces = number(row, 'replaces') === 1 ? liveCounts(database, number(row, 'ordinal')) : undefined;
  return {
    partition,
    id: text(row, 'id'),
    offset: number(row, 'offset'),
    bytes: number(row, 'bytes'),
    turns: number(row, 'turns'),
    fence: number(row, 'fence'),
    finishedTurns: finishedTurns(database, row),
    round: number(row, 'round'),
    ...(replaces === undefined ? {} : { replaces }),
  };
}
