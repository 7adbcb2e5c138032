/**
 * One connection to an SQLite file: statements prepared once, transactions, errors translated.
 *
 * Promises: a transaction is whole or not there; it is on disk when `transaction` returns (WAL, synchronous=FULL).
 * On failure: rolled back and thrown as an `AerieError`. After `disk.failed` nobody knows whether the last transaction
 * reached the disk, so every later one is refused with the same error until the file is opened again.
 */
import { DatabaseSync, type DatabaseSyncInstance, type StatementSyncInstance } from '@photostructure/sqlite';
import { existsSync, statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { AerieError } from '../../base/errors.ts';
import type { Bindings, Row } from './row.ts';
import { explainSqliteError, isCannotOpen } from './sqlite-error.ts';

/** A reader (`aerie status`) or a backup may hold the file for a moment; longer than this is somebody to be named. */
const BUSY_TIMEOUT_MS = 5000;
/** The index of a million prompt ids takes about 45 MB, and every commit looks 256 of them up. */
const CACHE_KIB = 64 * 1024;
/** A whole check reads every page: 0.4 s for this much, 3 s for the ledger of a million records, too long for a resume. */
const CHECKED_BYTES = 32 * 1024 * 1024;

export class Database {
  readonly path: string;
  readonly #connection: DatabaseSyncInstance;
  readonly #statements = new Map<string, StatementSyncInstance>();
  #failure: AerieError | undefined;

  private constructor(path: string, connection: DatabaseSyncInstance) {
    this.path = path;
    this.#connection = connection;
  }

  static open(path: string, readOnly: boolean): Database {
    try {
      const database = new Database(path, readOnly ? openReadOnly(path) : new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS }));
      try {
        database.#connection.exec(`PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -${CACHE_KIB};`);
      } catch (thrown) {
        database.close();
        throw thrown;
      }
      return database;
    } catch (thrown) {
      throw explainSqliteError(thrown, path);
    }
  }

  isEmpty(): boolean {
    return this.get('SELECT 1 AS found FROM sqlite_schema LIMIT 1') === undefined;
  }

  /** Kept in the file: readers then read while a writer writes. SQLite says no by keeping the old mode. */
  useWriteAheadLog(): void {
    const mode = this.get('PRAGMA journal_mode = WAL')?.['journal_mode'];
    if (mode === 'wal') return;
    throw new AerieError('disk.failed', `${this.path} lies on a file system that has no shared memory between processes.`, {
      because: `SQLite kept journal mode ${String(mode)} when asked for a write-ahead log; network file systems do that`,
      remedy: 'Put the run folder on a local disk.',
      facts: { path: this.path, mode: String(mode) },
    });
  }

  /** What `quick_check` finds in a file small enough to be checked at every opening; undefined = nothing, or too large. */
  findDamage(): string | undefined {
    if (this.#guard(() => statSync(this.path)).size > CHECKED_BYTES) return undefined;
    const verdict = this.get('PRAGMA quick_check(1)')?.['quick_check'];
    return verdict === 'ok' ? undefined : String(verdict);
  }

  /** Several statements without parameters. */
  exec(sql: string): void {
    this.#guard(() => this.#connection.exec(sql));
  }

  get(sql: string, bindings: Bindings = {}): Row | undefined {
    return this.#guard(() => this.#prepare(sql).get(bindings) as Row | undefined);
  }

  all(sql: string, bindings: Bindings = {}): readonly Row[] {
    return this.#guard(() => this.#prepare(sql).all(bindings) as readonly Row[]);
  }

  /** How many rows changed, and the key of the last one inserted. */
  run(sql: string, bindings: Bindings = {}): { readonly changes: number; readonly lastId: number } {
    return this.#guard(() => {
      const result = this.#prepare(sql).run(bindings);
      return { changes: result.changes, lastId: Number(result.lastInsertRowid) };
    });
  }

  transaction<T>(work: () => T): T {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      // IMMEDIATE: take the right to write first, so that no read inside can turn out to be old at the first write.
      this.#connection.exec('BEGIN IMMEDIATE');
      const result = work();
      this.#connection.exec('COMMIT');
      return result;
    } catch (thrown) {
      const error = explainSqliteError(thrown, this.path);
      if (error.code === 'disk.failed') this.#failure = error;
      this.#rollBack();
      throw error;
    }
  }

  close(): void {
    this.#statements.clear();
    if (this.#connection.isOpen) this.#connection.close();
  }

  #prepare(sql: string): StatementSyncInstance {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = this.#connection.prepare(sql);
    this.#statements.set(sql, statement);
    return statement;
  }

  #guard<T>(work: () => T): T {
    try {
      return work();
    } catch (thrown) {
      throw explainSqliteError(thrown, this.path);
    }
  }

  /** SQLite has rolled back by itself after some errors; one that fails leaves nothing more to do than the error already known. */
  #rollBack(): void {
    try {
      if (this.#connection.isTransaction) this.#connection.exec('ROLLBACK');
    } catch (thrown) {
      this.#failure ??= explainSqliteError(thrown, this.path);
    }
  }
}

/**
 * A WAL file needs its `-shm` beside it even to be read. On a folder that cannot be written there is none; then the file
 * is read as immutable, which is right only while nobody writes: no `-wal` means that all of it is in the main file.
 */
function openReadOnly(path: string): DatabaseSyncInstance {
  try {
    return probe(new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS }));
  } catch (thrown) {
    if (!isCannotOpen(thrown) || !existsSync(path) || existsSync(`${path}-wal`)) throw thrown;
    return probe(new DatabaseSync(`${pathToFileURL(path).href}?immutable=1`, { readOnly: true }));
  }
}

/** Opening reads nothing; the first read is what fails. */
function probe(connection: DatabaseSyncInstance): DatabaseSyncInstance {
  try {
    connection.prepare('SELECT count(*) FROM sqlite_schema').get();
    return connection;
  } catch (thrown) {
    connection.close();
    throw thrown;
  }
}
