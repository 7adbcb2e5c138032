/** What SQLite gives back, read column by column: a wrong column name or type is a bug, never an `undefined` further on. */
import { bug } from '../../base/errors.ts';

export type SqlValue = string | number | null;
export type Row = Readonly<Record<string, unknown>>;
/** Named parameters of a statement, `:name` in the SQL. */
export type Bindings = Readonly<Record<string, SqlValue>>;

export function number(row: Row, column: string): number {
  const value = row[column];
  if (typeof value !== 'number') throw bug(`Column ${column} of the ledger holds no number.`, { column });
  return value;
}

export function text(row: Row, column: string): string {
  const value = row[column];
  if (typeof value !== 'string') throw bug(`Column ${column} of the ledger holds no text.`, { column });
  return value;
}
