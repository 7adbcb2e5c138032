/** Reads a run's `ledger.sqlite` for the judge: plain SQL, nothing of Aerie's. */
import { DatabaseSync } from '@photostructure/sqlite';
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface RecordRow {
  readonly partition: string;
  readonly id: string;
  readonly shard: number;
  readonly offset: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly state: string;
  readonly tokens: number;
  readonly turns: number;
}

/** A finished turn of an unfinished conversation, and where its prompt lies. */
export interface TurnRow {
  readonly partition: string;
  readonly id: string;
  readonly turn: number;
  readonly tokens: number;
  readonly body: string;
  /** Bodies of the turns before it. */
  readonly before: readonly string[];
  readonly offset: number;
  readonly bytes: number;
}

export interface ShardRow {
  readonly partition: string;
  readonly number: number;
  readonly committedBytes: number;
  readonly records: number;
  readonly sealed: number;
  readonly sha256: string;
}

export interface LedgerRows {
  /** `ok`, or what SQLite finds wrong. */
  readonly integrity: string;
  readonly partitions: readonly {
    readonly name: string;
    /** The row as it is; most of it are numbers. */
    readonly counters: Readonly<Record<string, unknown>>;
    /** The same by counting rows. */
    readonly counted: Readonly<Record<string, number>>;
  }[];
  readonly records: readonly RecordRow[];
  readonly turns: readonly TurnRow[];
  readonly shards: readonly ShardRow[];
  readonly events: readonly { readonly n: number; readonly kind: string; readonly subject: string }[];
  readonly attempts: number;
  readonly outcomes: number;
}

/**
 * `copied`: a copy of the files is opened, because opening a ledger after a crash repairs it, and a judge leaves things as
 * they are. `in place`: as a reader beside a worker. undefined: there is no ledger yet, or no tables in it.
 */
export function readLedger(runFolder: string, how: 'copied' | 'in place'): LedgerRows | undefined {
  const path = join(runFolder, 'ledger.sqlite');
  if (!existsSync(path)) return undefined;
  if (how === 'in place') return readRows(path);
  const folder = mkdtempSync(join(tmpdir(), 'aerie-judge-'));
  try {
    for (const suffix of ['', '-wal']) {
      if (existsSync(path + suffix)) copyFileSync(path + suffix, join(folder, `ledger.sqlite${suffix}`));
    }
    return readRows(join(folder, 'ledger.sqlite'), true);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const COUNTED = `
SELECT partitions.name,
  (SELECT count(*) FROM prompts WHERE partition = partitions.ordinal) AS enrolled,
  (SELECT coalesce(sum(bytes), 0) FROM prompts WHERE partition = partitions.ordinal) AS prompts_bytes,
  (SELECT count(*) FROM prompts WHERE partition = partitions.ordinal AND state = 'waiting') AS waiting,
  (SELECT count(*) FROM prompts WHERE partition = partitions.ordinal AND state = 'leased') AS leased,
  (SELECT count(*) FROM prompts WHERE partition = partitions.ordinal AND state = 'aside') AS aside,
  (SELECT count(*) FROM records WHERE partition = partitions.ordinal AND state = 'live') AS done,
  (SELECT coalesce(sum(tokens), 0) FROM records WHERE partition = partitions.ordinal AND state = 'live')
    + (SELECT coalesce(sum(tokens), 0) FROM turns JOIN prompts ON prompt = ordinal WHERE partition = partitions.ordinal) AS spent_tokens,
  (SELECT coalesce(sum(turns), 0) FROM records WHERE partition = partitions.ordinal AND state = 'live')
    + (SELECT count(*) FROM turns JOIN prompts ON prompt = ordinal WHERE partition = partitions.ordinal) AS answers,
  (SELECT coalesce(sum(truncated), 0) FROM records WHERE partition = partitions.ordinal AND state = 'live')
    + (SELECT coalesce(sum(truncated), 0) FROM turns JOIN prompts ON prompt = ordinal WHERE partition = partitions.ordinal) AS truncated
FROM partitions ORDER BY partitions.ordinal`;

function readRows(path: string, wholeCheck = false): LedgerRows | undefined {
  const database = new DatabaseSync(path, { readOnly: !wholeCheck, timeout: 5_000 });
  const all = <T>(sql: string): T[] => database.prepare(sql).all() as T[];
  try {
    // One transaction: a worker may commit between two statements.
    database.exec('BEGIN');
    if (all(`SELECT 1 FROM sqlite_schema WHERE name = 'partitions'`).length === 0) return undefined;
    const counters = new Map(
      all<Record<string, unknown> & { name: string }>('SELECT * FROM partitions').map((row) => [row.name, row]),
    );
    const counted = all<Record<string, number> & { name: string }>(COUNTED);
    const turns = all<Omit<TurnRow, 'before'>>(
      `SELECT partitions.name AS partition, id, turn, tokens, body, offset, bytes FROM turns
       JOIN prompts ON turns.prompt = prompts.ordinal JOIN partitions ON partitions.ordinal = prompts.partition ORDER BY prompt, turn`,
    );
    return {
      integrity: wholeCheck ? integrityOf(all) : 'ok',
      partitions: counted.map(({ name, ...rest }) => ({ name, counted: rest, counters: counters.get(name) ?? {} })),
      records: all<RecordRow>(
        `SELECT partitions.name AS partition, prompts.id, shard, records.offset, records.bytes, sha256, records.state, tokens, records.turns
         FROM records JOIN prompts ON prompts.ordinal = records.prompt JOIN partitions ON partitions.ordinal = records.partition`,
      ),
      turns: turns.map((row) => ({
        ...row,
        before: turns
          .filter(({ id, partition, turn }) => id === row.id && partition === row.partition && turn < row.turn)
          .map(({ body }) => body),
      })),
      shards: all(
        `SELECT name AS partition, number, committed_bytes AS committedBytes, records, sealed, sha256
         FROM shards JOIN partitions ON partitions.ordinal = shards.partition`,
      ),
      events: all('SELECT n, kind, subject FROM events ORDER BY n'),
      attempts: all<{ n: number }>('SELECT count(*) AS n FROM attempts')[0]?.n ?? -1,
      outcomes: all<{ n: number }>('SELECT coalesce(sum(attempts), 0) AS n FROM outcomes')[0]?.n ?? -1,
    };
  } finally {
    if (database.isTransaction) database.exec('ROLLBACK');
    database.close();
  }
}

function integrityOf(all: <T>(sql: string) => T[]): string {
  const whole = all<{ integrity_check: string }>('PRAGMA integrity_check(5)').map((row) => row.integrity_check);
  const strangers = all('PRAGMA foreign_key_check').length;
  return strangers > 0 ? `${strangers} rows refer to nothing` : whole.join('; ');
}
