/** A row as a format's reader hands it over: numbered from 1 in its file, nothing known of what it means. */
import type { RejectionReason } from './rejection.ts';
import type { Line } from './split-lines.ts';

export type RawRow =
  /** The text of one JSON value, or a blank line, or one that is not held. */
  | Line
  /** Read already: a row of CSV or Parquet. */
  | { readonly kind: 'value'; readonly number: number; readonly byteLength: number; readonly value: unknown }
  /** Refused by the format itself. `start` is what the excerpt is made of. */
  | {
      readonly kind: 'refused';
      readonly number: number;
      readonly byteLength: number;
      readonly reason: RejectionReason;
      readonly detail: string;
      readonly start: Uint8Array;
    };

/** One file of a source, being read once from its start. */
export interface RowReader {
  /** Rows in groups, each of bounded size; may leave out any of the first `skipRows`. */
  rows(skipRows: number): AsyncIterable<readonly RawRow[]>;
  /** Covers at least the rows handed over. */
  hashed(): { readonly sha256: string; readonly hashedBytes: number };
}
