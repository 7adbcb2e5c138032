/** Facts about the whole file: its format and the identity of its run. */
import type { Facts } from '../../base/events.ts';
import type { Database } from './database.ts';
import { text } from './row.ts';

/** Every ledger has the table; an SQLite file of another program may not. */
export function hasMeta(database: Database): boolean {
  return database.get(`SELECT 1 AS found FROM sqlite_schema WHERE type = 'table' AND name = 'meta'`) !== undefined;
}

/** '' where the key is not there. */
export function readMeta(database: Database, key: 'format' | 'identity'): string {
  const row = database.get('SELECT value FROM meta WHERE key = :key', { key });
  return row === undefined ? '' : text(row, 'value');
}

export function readIdentity(database: Database): Facts {
  return JSON.parse(readMeta(database, 'identity')) as Facts; // written only below
}

/** Inside a transaction. */
export function writeIdentity(database: Database, facts: Facts): void {
  database.run(`UPDATE meta SET value = :facts WHERE key = 'identity'`, { facts: JSON.stringify(facts) });
}
