/**
 * New attempts for prompts that have ended: done → waiting with its record still live (`replaces`), aside or dropped →
 * waiting. A record that is to be replaced stays live until the new one is entered, in that same transaction; where the new
 * attempt comes to nothing (set aside, dropped) the prompt is done again with the record it had. So a prompt never has two live
 * records, and never loses the one it has to an attempt that failed. `round` rises, so that a new attempt is asked with a new
 * seed. All functions run inside a transaction.
 */
import type { Happening } from '../../base/events.ts';
import type { RecordCounts } from '../ledger.ts';
import type { Database } from './database.ts';
import { CounterChanges, partitionOrdinal } from './partitions.ts';
import { number, type Row } from './row.ts';

/** The ids that are done, and how many of them there are; others are passed over. */
export function supersedePrompts(
  database: Database,
  request: { readonly partition: string; readonly ids: readonly string[]; readonly because: string },
): { readonly records: number; readonly happenings: readonly Happening[] } {
  const partition = partitionOrdinal(database, request.partition);
  const { changes: records } = database.run(
    `UPDATE prompts SET state = 'waiting', replaces = 1, round = round + 1
     WHERE partition = :partition AND state = 'done' AND id IN (SELECT value FROM json_each(:ids))`,
    { partition, ids: JSON.stringify(request.ids) },
  );
  if (records === 0) return { records, happenings: [] };
  const changes = new CounterChanges(database);
  changes.add(partition, { done: -records, waiting: records, redoing: records });
  changes.write();
  const facts = { records, because: request.because };
  return { records, happenings: [{ kind: 'partition.redoing', subject: request.partition, facts }] };
}

export interface Requeued {
  readonly aside: number;
  readonly dropped: number;
}

/** What has no record: a prompt set aside is asked as it was, a dropped one with a new seed (the old one ends as it did). */
export function requeuePrompts(database: Database, name: string): Requeued & { readonly happenings: readonly Happening[] } {
  const partition = partitionOrdinal(database, name);
  database.run('DELETE FROM asides WHERE prompt IN (SELECT ordinal FROM prompts WHERE partition = :partition)', { partition });
  const { changes: aside } = database.run(
    `UPDATE prompts SET state = 'waiting' WHERE partition = :partition AND state = 'aside'`,
    { partition },
  );
  const { changes: dropped } = database.run(
    `UPDATE prompts SET state = 'waiting', round = round + 1 WHERE partition = :partition AND state = 'dropped'`,
    { partition },
  );
  if (aside + dropped === 0) return { aside, dropped, happenings: [] };
  const changes = new CounterChanges(database);
  changes.add(partition, { waiting: aside + dropped, aside: -aside, dropped: -dropped });
  changes.write();
  return { aside, dropped, happenings: [{ kind: 'partition.requeued', subject: name, facts: { aside, dropped } }] };
}

/** The live record of a prompt that is asked again. */
export function liveCounts(database: Database, prompt: number): RecordCounts | undefined {
  const row = database.get(`SELECT tokens, turns, truncated FROM records WHERE prompt = :prompt AND state = 'live'`, { prompt });
  return row === undefined ? undefined : toCounts(row);
}

/** Takes the live record's place away; what it had counted is the answer. Called right before the new one is entered. */
export function supersedeRecord(database: Database, prompt: number): RecordCounts | undefined {
  const row = database.get(
    `UPDATE records SET state = 'superseded' WHERE prompt = :prompt AND state = 'live' RETURNING tokens, turns, truncated`,
    { prompt },
  );
  if (row === undefined) return undefined;
  database.run(`DELETE FROM also_by WHERE prompt = :prompt AND part = 'record'`, { prompt });
  return toCounts(row);
}

function toCounts(row: Row): RecordCounts {
  return { tokens: number(row, 'tokens'), turns: number(row, 'turns'), truncated: number(row, 'truncated') };
}
