/**
 * Which bytes of which shard are committed. `committed_bytes` is where a shard file is cut on start, so a record must
 * begin exactly where the last one ended: a gap would be bytes that nobody vouches for.
 */
import { bug } from '../../base/errors.ts';
import type { CommittedRecord, LiveRecord, ShardRow } from '../ledger.ts';
import type { Database } from './database.ts';
import { partitionOrdinal } from './partitions.ts';
import { number, type Row, text } from './row.ts';

/** Live records are read in pages, so that no statement stays open while the caller works (and the ledger may commit meanwhile). */
const PAGE_ROWS = 1000;

/** What one commit appends to shards; written once per shard. */
export class ShardChanges {
  readonly #database: Database;
  readonly #shards = new Map<string, { partition: number; number: number; committedBytes: number; added: number }>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** Creates the shard's row at its first record, because the record's row refers to it. */
  append(partition: number, record: CommittedRecord): void {
    const key = `${partition}/${record.shard}`;
    const shard = this.#shards.get(key) ?? this.#load(partition, record);
    if (record.offset !== shard.committedBytes) {
      throw bug(
        `A record of ${record.partition} begins at byte ${record.offset} of shard ${record.shard}, which ends at ${shard.committedBytes}.`,
        {
          partition: record.partition,
          shard: record.shard,
          offset: record.offset,
          committedBytes: shard.committedBytes,
        },
      );
    }
    shard.committedBytes += record.bytes;
    shard.added += 1;
    this.#shards.set(key, shard);
  }

  write(): void {
    for (const { partition, number, committedBytes, added } of this.#shards.values()) {
      this.#database.run(
        `UPDATE shards SET committed_bytes = :committedBytes, records = records + :added
         WHERE partition = :partition AND number = :number`,
        { partition, number, committedBytes, added },
      );
    }
  }

  #load(
    partition: number,
    record: CommittedRecord,
  ): { partition: number; number: number; committedBytes: number; added: number } {
    const key = { partition, number: record.shard };
    this.#database.run(
      `INSERT INTO shards (partition, number, committed_bytes, records) VALUES (:partition, :number, 0, 0) ON CONFLICT DO NOTHING`,
      key,
    );
    const row = this.#database.get(
      'SELECT committed_bytes FROM shards WHERE partition = :partition AND number = :number AND sealed = 0',
      key,
    );
    if (row === undefined)
      throw bug(`Shard ${record.shard} of ${record.partition} is sealed and was appended to.`, { shard: record.shard });
    return { ...key, committedBytes: number(row, 'committed_bytes'), added: 0 };
  }
}

export function readShards(database: Database): readonly ShardRow[] {
  return database
    .all(
      `SELECT name, number, committed_bytes, records, sealed, sha256
       FROM shards JOIN partitions ON partitions.ordinal = shards.partition ORDER BY shards.partition, number`,
    )
    .map(toShardRow);
}

/** Inside a transaction. */
export function sealShardRow(
  database: Database,
  shard: { readonly partition: string; readonly number: number; readonly sha256: string },
): void {
  const { changes } = database.run(
    'UPDATE shards SET sealed = 1, sha256 = :sha256 WHERE partition = :partition AND number = :number AND sealed = 0',
    { partition: partitionOrdinal(database, shard.partition), number: shard.number, sha256: shard.sha256 },
  );
  if (changes !== 1)
    throw bug(`Shard ${shard.number} of ${shard.partition} is not open and was sealed.`, { shard: shard.number });
}

/** In the order of the files. */
export function* readLiveRecords(database: Database, name: string): Generator<LiveRecord, void, undefined> {
  const partition = partitionOrdinal(database, name);
  let after = { shard: -1, offset: -1 };
  for (;;) {
    const rows = database.all(
      `SELECT shard, records.offset, records.bytes, sha256, launch, id
       FROM records JOIN prompts ON prompts.ordinal = records.prompt
       WHERE records.partition = :partition AND (shard, records.offset) > (:shard, :offset) AND records.state = 'live'
       ORDER BY shard, records.offset LIMIT ${PAGE_ROWS}`,
      { partition, ...after },
    );
    for (const row of rows) {
      const record = toLiveRecord(name, row);
      after = { shard: record.shard, offset: record.offset };
      yield record;
    }
    if (rows.length < PAGE_ROWS) return;
  }
}

function toShardRow(row: Row): ShardRow {
  return {
    partition: text(row, 'name'),
    number: number(row, 'number'),
    committedBytes: number(row, 'committed_bytes'),
    records: number(row, 'records'),
    sealed: number(row, 'sealed') === 1,
    sha256: text(row, 'sha256'),
  };
}

function toLiveRecord(partition: string, row: Row): LiveRecord {
  return {
    partition,
    id: text(row, 'id'),
    shard: number(row, 'shard'),
    offset: number(row, 'offset'),
    bytes: number(row, 'bytes'),
    sha256: text(row, 'sha256'),
    launch: number(row, 'launch'),
  };
}
