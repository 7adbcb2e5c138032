/** Reads a run's `ledger.sqlite` for the judge: plain SQL, nothing of Aerie's. */

import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DatabaseSync } from '@photostructure/sqlite';

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
 * they are. `in place`: as a reader beside a worker does. undefined: there is no ledger yet, or no tables in it.
 */
export function readLedger(runFolder: string, how: 'copied' | 'in place'): LedgerRows | undefined {
  const path = join(runFolder, 'ledger.sqlite');
  if (!existsSync(path)) return undefined;
  if (how === 'in place') return toRows(askElsewhere(path));
  const folder = mkdtempSync(join(tmpdir(), 'aerie-judge-'));
  try {
    for (const suffix of ['', '-wal']) {
      if (existsSync(path + suffix)) copyFileSync(path + suffix, join(folder, `ledger.sqlite${suffix}`));
    }
    return toRows(askHere(join(folder, 'ledger.sqlite')));
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
  (SELECT count(*) FROM prompts WHERE partition = partitions.ordinal AND state = 'dropped') AS dropped,
  (SELECT count(*) FROM prompts WHERE partition = partitions.ordinal AND replaces = 1) AS redoing,
  (SELECT count(*) FROM records WHERE partition = partitions.ordinal AND state = 'live')
    - (SELECT count(*) FROM prompts WHERE partition = partitions.ordinal AND replaces = 1) AS done,
  (SELECT coalesce(sum(tokens), 0) FROM records WHERE partition = partitions.ordinal AND state = 'live')
    + (SELECT coalesce(sum(tokens), 0) FROM turns JOIN prompts ON prompt = ordinal WHERE partition = partitions.ordinal) AS spent_tokens,
  (SELECT coalesce(sum(turns), 0) FROM records WHERE partition = partitions.ordinal AND state = 'live')
    + (SELECT count(*) FROM turns JOIN prompts ON prompt = ordinal WHERE partition = partitions.ordinal) AS answers,
  (SELECT coalesce(sum(truncated), 0) FROM records WHERE partition = partitions.ordinal AND state = 'live')
    + (SELECT coalesce(sum(truncated), 0) FROM turns JOIN prompts ON prompt = ordinal WHERE partition = partitions.ordinal) AS truncated
FROM partitions ORDER BY partitions.ordinal`;

const QUERIES = {
  partitions: 'SELECT * FROM partitions',
  counted: COUNTED,
  records: `SELECT partitions.name AS partition, prompts.id, shard, records.offset, records.bytes, sha256, records.state, tokens, records.turns
    FROM records JOIN prompts ON prompts.ordinal = records.prompt JOIN partitions ON partitions.ordinal = records.partition`,
  turns: `SELECT partitions.name AS partition, id, turn, tokens, body, offset, bytes FROM turns
    JOIN prompts ON turns.prompt = prompts.ordinal JOIN partitions ON partitions.ordinal = prompts.partition ORDER BY prompt, turn`,
  shards: `SELECT name AS partition, number, committed_bytes AS committedBytes, records, sealed, sha256
    FROM shards JOIN partitions ON partitions.ordinal = shards.partition`,
  events: 'SELECT n, kind, subject FROM events ORDER BY n',
  attempts: 'SELECT count(*) AS n FROM attempts',
  outcomes: 'SELECT coalesce(sum(attempts), 0) AS n FROM outcomes',
};

type Answers = Readonly<Record<keyof typeof QUERIES | 'integrity' | 'strangers', readonly unknown[]>>;
type Named = Readonly<Record<string, number>> & { readonly name: string };

function askHere(path: string): Answers | undefined {
  const database = new DatabaseSync(path);
  try {
    const all = (sql: string): unknown[] => database.prepare(sql).all();
    if (all(HAS_TABLES).length === 0) return undefined;
    const checks = { integrity: all('PRAGMA integrity_check(5)'), strangers: all('PRAGMA foreign_key_check') };
    const entries = Object.entries(QUERIES).map(([name, sql]) => [name, all(sql)]);
    return { ...checks, ...Object.fromEntries(entries) };
  } finally {
    database.close();
  }
}

/**
 * In a process of its own, as `aerie status` is one: the library keeps a file open until the garbage collector comes, and a reader
 * that stays over a kill keeps the shared memory of the write-ahead log, so that the next worker makes no recovery.
 */
function askElsewhere(path: string): Answers | undefined {
  const args = ['--input-type=module', '-e', ASK, path, HAS_TABLES, JSON.stringify(QUERIES)];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28 });
  if (status !== 0) throw new Error(`the ledger cannot be read beside its worker: ${stderr}`);
  return JSON.parse(stdout) as Answers | undefined;
}

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HAS_TABLES = `SELECT 1 FROM sqlite_schema WHERE name = 'partitions'`;
/** One transaction: a worker may commit between two statements. */
const ASK = `
import { DatabaseSync } from '@photostructure/sqlite';
const [path, hasTables, queries] = process.argv.slice(1);
const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 });
database.exec('BEGIN');
const all = (sql) => database.prepare(sql).all();
const answers = () => Object.fromEntries(Object.entries(JSON.parse(queries)).map(([name, sql]) => [name, all(sql)]));
process.stdout.write(all(hasTables).length === 0 ? 'null' : JSON.stringify({ ...answers(), integrity: [], strangers: [] }));`;

function toRows(answers: Answers | null | undefined): LedgerRows | undefined {
  if (answers === undefined || answers === null) return undefined;
  const counters = new Map((answers.partitions as Named[]).map((row) => [row.name, row]));
  const turns = answers.turns as Omit<TurnRow, 'before'>[];
  const totalOf = (rows: readonly unknown[]): number => (rows as { n: number }[])[0]?.n ?? -1;
  return {
    integrity: integrityOf(answers),
    partitions: (answers.counted as Named[]).map(({ name, ...counted }) => ({
      name,
      counted,
      counters: counters.get(name) ?? {},
    })),
    records: answers.records as RecordRow[],
    turns: turns.map((row) => ({ ...row, before: turns.filter((other) => isBefore(other, row)).map(({ body }) => body) })),
    shards: answers.shards as ShardRow[],
    events: answers.events as LedgerRows['events'],
    attempts: totalOf(answers.attempts),
    outcomes: totalOf(answers.outcomes),
  };
}

function isBefore(other: Omit<TurnRow, 'before'>, row: Omit<TurnRow, 'before'>): boolean {
  return other.id === row.id && other.partition === row.partition && other.turn < row.turn;
}

function integrityOf({ integrity, strangers }: Answers): string {
  if (strangers.length > 0) return `${strangers.length} rows refer to nothing`;
  const found = (integrity as { integrity_check: string }[]).map((row) => row.integrity_check).join('; ');
  return found === '' ? 'ok' : found;
}
