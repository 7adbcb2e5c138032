/**
 * One worker per run. The right to work is an exclusive lock on `lock.sqlite`, which the system drops with the process,
 * even after kill -9; a file with a pid would outlive its process. The holder's name lies beside it in `lock.json`, for
 * the message alone: it decides nothing and may be old.
 *
 * States: free → held (`holdRun`) → free (`release`, or the end of the process).
 * On failure: `ledger.held-elsewhere` with the holder's name, `disk.*`.
 * Only `exec` is used: a prepared statement would keep the lock after `close`, until the garbage collector takes it.
 * Nothing else in this process may open and close `lock.sqlite`: that would drop the lock (POSIX record locks).
 */

import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { AerieError } from '../../base/errors.ts';
import { quoteShell } from '../../base/quote-shell.ts';
import { openForWork } from './open-file.ts';
import { explainSqliteError, isBusy } from './sqlite-error.ts';

export interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** With the pid these name one process for ever; absent where the system does not tell. */
  readonly startTicks?: number;
  readonly bootId?: string;
  /** It is in no terminal, and its words go to `log`. */
  readonly isDetached?: boolean;
  readonly log?: string;
  /** It was asked to end, and finishes what is in flight. */
  readonly isDraining?: boolean;
}

export interface HeldRun {
  /** What a holder says of itself later; that it cannot be written changes nothing. */
  rename(holder: Holder): void;
  /** Gives the run back. A second call does nothing. */
  release(): void;
}

/** A connection that nothing refers to is closed by the garbage collector, and the lock with it. */
const heldConnections = new Set<DatabaseSyncInstance>();

export function holdRun(folder: string, holder: Holder): HeldRun {
  const path = join(folder, 'lock.sqlite');
  const namePath = join(folder, 'lock.json');
  const connection = takeLock(path, namePath);
  try {
    writeName(namePath, holder);
  } catch (thrown) {
    connection.close();
    throw explainSqliteError(thrown, namePath);
  }
  heldConnections.add(connection);
  return {
    rename(renamed) {
      try {
        if (connection.isOpen) writeName(namePath, renamed);
      } catch {
        // the name is for people, and the one that is there is still right
      }
    },
    release: () => {
      if (!connection.isOpen) return;
      rmSync(namePath, { force: true }); // while still held: the next holder's name must not be the one removed
      connection.close();
      heldConnections.delete(connection);
    },
  };
}

function takeLock(path: string, namePath: string): DatabaseSyncInstance {
  let connection: DatabaseSyncInstance | undefined;
  try {
    // 0: a run that is held stays held for hours, waiting would only hide that.
    connection = openForWork(path, 0);
    // Not WAL, where an exclusive transaction would leave readers in and need shared memory.
    connection.exec('PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE;');
    return connection;
  } catch (thrown) {
    connection?.close();
    throw isBusy(thrown) ? heldElsewhere(path, readName(namePath), thrown) : explainSqliteError(thrown, path);
  }
}

function heldElsewhere(path: string, holder: Holder | undefined, cause: unknown): AerieError {
  const who = holder === undefined ? 'a worker that has not written its name' : `pid ${holder.pid} on ${holder.host}`;
  const since = holder === undefined ? '' : ` since ${new Date(holder.startedAt).toISOString()}`;
  const end = holder === undefined ? `fuser ${path}` : `aerie stop ${quoteShell(dirname(path))}`;
  const where = holder === undefined ? 'shows who holds it' : `on ${holder.host}: it drains, commits and ends`;
  return new AerieError(
    'ledger.held-elsewhere',
    `This run is being worked on by ${who}${since}.`,
    {
      because: `${path} is locked; the lock falls with its process, so that process is alive`,
      remedy: `Watch it with: aerie status ${quoteShell(dirname(path))}\nor end it with: ${end}   (${where}), then type the same command.`,
      facts: holder === undefined ? { path } : { path, pid: holder.pid, host: holder.host, startedAt: holder.startedAt },
    },
    cause,
  );
}

/** Renamed into place, so that a reader never sees half a name. */
function writeName(path: string, holder: Holder): void {
  const fresh = `${path}.new`;
  writeFileSync(fresh, `${JSON.stringify(holder)}\n`);
  renameSync(fresh, path);
}

/** Who holds the run, or held it when it was killed: see whether that process is there. */
export function readHolder(folder: string): Holder | undefined {
  return readName(join(folder, 'lock.json'));
}

function readName(path: string): Holder | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    return isHolder(value) ? value : undefined;
  } catch {
    return undefined; // not written yet, or just removed: the message then does without a name
  }
}

function isHolder(value: unknown): value is Holder {
  if (typeof value !== 'object' || value === null) return false;
  const { pid, host, startedAt, startTicks = 0, bootId = '', log = '' } = value as Readonly<Record<string, unknown>>;
  const isNamed = typeof pid === 'number' && Number.isSafeInteger(pid) && pid > 0;
  const isKnown = typeof startTicks === 'number' && typeof bootId === 'string' && typeof log === 'string';
  return isNamed && isKnown && typeof host === 'string' && typeof startedAt === 'number';
}
