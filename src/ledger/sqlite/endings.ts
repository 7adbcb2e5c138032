/** How prompts and attempts have ended, for reading: set aside and why, and outcomes by their number. */
import type { AsideReason } from '../../base/aside-reason.ts';
import type { AsideRow } from '../ledger.ts';
import type { Database } from './database.ts';
import { partitionOrdinal } from './partitions.ts';
import { number, type Row, text } from './row.ts';

export function readSetAsides(database: Database, partition: string, most: number): readonly AsideRow[] {
  const rows = database.all(
    `SELECT id, reason, because FROM asides JOIN prompts ON prompts.ordinal = asides.prompt
     WHERE prompts.partition = :partition ORDER BY asides.prompt LIMIT :most`,
    { partition: partitionOrdinal(database, partition), most },
  );
  return rows.map((row) => ({ partition, id: text(row, 'id'), reason: reasonOf(row), because: text(row, 'because') }));
}

export function readAsideCounts(database: Database, partition: string): Readonly<Partial<Record<AsideReason, number>>> {
  const rows = database.all(
    `SELECT reason, count(*) AS prompts FROM asides JOIN prompts ON prompts.ordinal = asides.prompt
     WHERE prompts.partition = :partition GROUP BY reason ORDER BY prompts DESC, reason`,
    { partition: partitionOrdinal(database, partition) },
  );
  return Object.fromEntries(rows.map((row) => [reasonOf(row), number(row, 'prompts')]));
}

/** Written only by a commit. */
function reasonOf(row: Row): AsideReason {
  return text(row, 'reason') as AsideReason;
}

export function readOutcomeCounts(database: Database): Readonly<Record<string, number>> {
  const rows = database.all('SELECT outcome, attempts FROM outcomes ORDER BY outcome');
  return Object.fromEntries(rows.map((row) => [text(row, 'outcome'), number(row, 'attempts')]));
}
