/**
 * Opens the ledger of a run folder: `ledger.sqlite`, made where it is not there.
 *
 * Promises: those of `Ledger`. A ledger of format 3 is carried over by the first opening for work. A read-only opening never writes, works while a worker writes, and on a folder that
 * cannot be written. A file that is refused is left as it was.
 * On failure: `ledger.newer`, `ledger.damaged`, `disk.*`, and `run.absent` for a read-only opening of nothing.
 */
import { existsSync } from 'node:fs';
import { AerieError } from '../../base/errors.ts';
import type { Ledger } from '../ledger.ts';
import { Database } from './database.ts';
import { hasMeta, readMeta } from './meta.ts';
import { FORMAT, MIGRATE_FROM_3, OLDEST_FORMAT, READ_FORMAT_3, SCHEMA } from './schema.ts';
import { SqliteLedger } from './sqlite-ledger.ts';

export interface LedgerOptions {
  readonly clock: { now(): number };
  readonly readOnly?: boolean;
}

export function openSqliteLedger(path: string, options: LedgerOptions): Ledger {
  const readOnly = options.readOnly ?? false;
  if (readOnly && !existsSync(path)) throw absent(path);
  const database = Database.open(path, readOnly);
  try {
    if (readOnly) checkForReading(database);
    else prepareForWork(database);
  } catch (thrown) {
    database.close();
    throw thrown;
  }
  return new SqliteLedger(database, options.clock);
}

function checkForReading(database: Database): void {
  if (database.isEmpty()) throw absent(database.path);
  if (checkFormat(database) < FORMAT) database.exec(READ_FORMAT_3);
}

/** Makes the tables in a file that has none. The transaction proves that the file can be written: SQLite opens a read-only one without a word. */
function prepareForWork(database: Database): void {
  const damage = database.findDamage();
  if (damage !== undefined) throw damaged(database.path, damage);
  const isOlder = !database.isEmpty() && checkFormat(database) < FORMAT;
  database.useWriteAheadLog();
  database.transaction(() => {
    if (database.isEmpty()) database.exec(SCHEMA);
    else if (isOlder && checkFormat(database) < FORMAT) database.exec(MIGRATE_FROM_3);
  });
}

/** The format, where it is one that this Aerie reads. */
function checkFormat(database: Database): number {
  const format = hasMeta(database) ? Number(readMeta(database, 'format')) : Number.NaN;
  if (format > FORMAT) {
    throw new AerieError('ledger.newer', `${database.path} has format ${format}; this Aerie knows formats up to ${FORMAT}.`, {
      because: 'a newer Aerie has written in this run folder',
      remedy: 'Use the Aerie that made it, or a newer one (npm install aerie@latest). Nothing was changed.',
      facts: { path: database.path, format, known: FORMAT },
    });
  }
  if (format >= 1 && format < OLDEST_FORMAT) {
    throw new AerieError(
      'ledger.older',
      `${database.path} has format ${format}; this Aerie reads those from ${OLDEST_FORMAT} on.`,
      {
        because: 'it was made by an Aerie before its first release, and no run of those is carried over',
        remedy:
          'Give the run another name under run: and start it again. Nothing was changed; the records under records/ are whole.',
        facts: { path: database.path, format, known: FORMAT },
      },
    );
  }
  if (!(format >= 1)) {
    throw damaged(database.path, 'it has tables, and none of them says in which format a ledger was written');
  }
  return format;
}

function damaged(path: string, because: string): AerieError {
  return new AerieError('ledger.damaged', `${path} is not a whole ledger of Aerie.`, {
    because,
    remedy:
      'Put back a copy of the run folder (all of it, taken while no worker ran). The records under records/ were not touched.',
    facts: { path },
  });
}

function absent(path: string): AerieError {
  return new AerieError('run.absent', `There is no ledger at ${path}.`, {
    remedy: 'Name the folder of a run that has been started, or start it: aerie run RUN.',
    facts: { path },
  });
}
