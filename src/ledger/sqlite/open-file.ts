/** Opening an SQLite file, for work or for reading alone. Errors are SQLite's or the system's; the caller translates them. */

import { closeSync, constants, existsSync, openSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import { isForWantOfWriting } from './sqlite-error.ts';

export function openForWork(path: string, timeoutMs: number): DatabaseSyncInstance {
  try {
    return new DatabaseSync(path, { timeout: timeoutMs });
  } catch (thrown) {
    askSystem(path);
    throw thrown;
  }
}

/**
 * A WAL file needs its `-shm` beside it even to be read. On a folder that cannot be written there is none; then the file
 * is read as immutable, which is right only while nobody writes: without a `-wal` all of it is in the main file.
 */
export function openForReading(path: string, timeoutMs: number): DatabaseSyncInstance {
  try {
    return probe(new DatabaseSync(path, { readOnly: true, timeout: timeoutMs }));
  } catch (thrown) {
    if (!isForWantOfWriting(thrown) || !existsSync(path) || existsSync(`${path}-wal`)) throw thrown;
    return probe(new DatabaseSync(`${pathToFileURL(path).href}?immutable=1`, { readOnly: true }));
  }
}

/** Opening reads nothing; the first read is what fails. */
function probe(connection: DatabaseSyncInstance): DatabaseSyncInstance {
  try {
    connection.exec('SELECT count(*) FROM sqlite_schema');
    return connection;
  } catch (thrown) {
    connection.close();
    throw thrown;
  }
}

/** SQLite tries a second time for reading and reports that second error; the first one is the reason. */
function askSystem(path: string): void {
  closeSync(openSync(path, constants.O_RDWR | constants.O_CREAT));
}
