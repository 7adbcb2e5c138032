/** Batches of prompts read from a source: all of a batch or none of it, with the new place in the source. */
import type { EnrolBatch } from '../ledger.ts';
import type { Database } from './database.ts';
import { partitionOrdinal } from './partitions.ts';
import { text } from './row.ts';

export function findKnownIds(database: Database, partition: string, ids: readonly string[]): ReadonlySet<string> {
  const rows = database.all('SELECT id FROM prompts WHERE partition = :partition AND id IN (SELECT value FROM json_each(:ids))', {
    partition: partitionOrdinal(database, partition),
    ids: JSON.stringify(ids),
  });
  return new Set(rows.map((row) => text(row, 'id')));
}

/** Inside a transaction. An id that is already there breaks the unique key, and the batch with it. */
export function enrolBatch(database: Database, batch: EnrolBatch): void {
  const partition = partitionOrdinal(database, batch.partition);
  for (const { id, offset, bytes, turns } of batch.prompts) {
    database.run('INSERT INTO prompts (partition, id, offset, bytes, turns) VALUES (:partition, :id, :offset, :bytes, :turns)', {
      partition,
      id,
      offset,
      bytes,
      turns,
    });
  }
  database.run(
    `UPDATE partitions SET
       enrolled = enrolled + :added, waiting = waiting + :added, duplicates = duplicates + :duplicates,
       rejected = rejected + :rejected, source_rows = :sourceRows, prompts_bytes = :promptsBytes,
       rejected_bytes = :rejectedBytes, enrolment = :enrolment, pin_path = :path, pin_bytes = :pinBytes,
       pin_mtime_ms = :mtimeMs, pin_sha256 = :sha256, pin_hashed_bytes = :hashedBytes,
       pin_files = :files
     WHERE ordinal = :partition`,
    {
      partition,
      added: batch.prompts.length,
      duplicates: batch.duplicates,
      rejected: batch.rejected,
      sourceRows: batch.sourceRows,
      promptsBytes: batch.promptsBytes,
      rejectedBytes: batch.rejectedBytes,
      enrolment: batch.enrolment,
      path: batch.pin.path,
      pinBytes: batch.pin.bytes,
      mtimeMs: batch.pin.mtimeMs,
      sha256: batch.pin.sha256,
      hashedBytes: batch.pin.hashedBytes,
      files: batch.pin.files === undefined ? '' : JSON.stringify(batch.pin.files),
    },
  );
}
