/**
 * One connection to an SQLite file: statements prepared once, transactions, errors translated.
 *
 * Promises: a transaction is whole or not there; it is on disk when `transaction` returns (WAL, synchronous=FULL).
 * On failure: rolled back and thrown as an `AerieError`. After `disk.failed` nobody knows whether the last transaction
 * reached the disk, so every later one is refused with the same error until the file is opened again.
 */

import { statSync } from 'node:fs';
import type { DatabaseSyncInstance, StatementSyncInstance } from '@photostructure/sqlite';
import { AerieError } from '../../base/errors.ts';
import { openForReading, openForWork } from './open-file.ts';
import type { Bindings, Row } from './row.ts';
import { explainSqliteError } from './sqlite-error.ts';

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
  #isWriting = false;

  private constructor(path: string, connection: DatabaseSyncInstance) {
    this.path = path;
    this.#connection = connection;
  }

  static open(path: string, readOnly: boolean): Database {
    try {
      const database = new Database(path, (readOnly ? openForReading : openForWork)(path, BUSY_TIMEOUT_MS));
      try {
        database.#connection.exec(
          `PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -${CACHE_KIB}; PRAGMA temp_store = MEMORY;`,
        );
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
    this.#isWriting = mode === 'wal';
    if (this.#isWriting) return;
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

  /**
   * The library keeps a prepared statement, and the files with it, until the garbage collector takes it. So what the log
   * holds is moved into the main file here, and a closed ledger is whole without its `-wal`.
   */
  close(): void {
    if (!this.#connection.isOpen) return;
    this.#statements.clear();
    this.#moveLogIntoFile();
    this.#connection.close();
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

  /** Not waiting for readers and not failing: whatever stays in the log is read from there by the next opening. */
  #moveLogIntoFile(): void {
    if (!this.#isWriting) return;
    try {
      this.#connection.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE);');
    } catch {
      // A full or failing disk: everything committed is in the log, which is durable.
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
