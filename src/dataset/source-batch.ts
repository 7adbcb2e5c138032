/** Rows gathered until they are worth a transaction: prompts, refused rows with their reasons, and the place that was reached. */
import type { Prompt } from '../base/conversation.ts';
import { formatCount } from '../base/units.ts';
import { excerptBytes, excerptText } from './excerpt-text.ts';
import type { RawRow } from './raw-row.ts';
import { type ReadPrompt, type RowOptions, readRow, readRowValue } from './read-row.ts';
import type { Rejection, RejectionReason } from './rejection.ts';
import type { SourcePin } from './source-pin.ts';

/** Rows of a batch: one ledger transaction each, so that its cost is spread over hundreds of rows. */
const MOST_BATCH_ROWS = 512;
/** Bytes of a batch's lines: parsing them holds the event loop for some 30 ms. One longer line is a batch of its own. */
const MOST_BATCH_BYTES = 4 * 2 ** 20;
/** Characters of a refused line that are kept: enough to recognise it by. */
const EXCERPT_CHARACTERS = 200;

export interface RejectedRow {
  /** Line of a file of lines, entry of a JSON list, row of CSV (without its header) or Parquet; counted from 1 in its file. */
  readonly row: number;
  readonly reason: RejectionReason;
  readonly detail: string;
  /** The beginning of the row, safe to print. */
  readonly excerpt: string;
  /** Where the source has several files: which. */
  readonly file?: string;
}

export interface SourceBatch {
  readonly prompts: readonly Prompt[];
  readonly rejected: readonly RejectedRow[];
  /** Rows (blank lines included) consumed since the start of the source, over all its files. */
  readonly rows: number;
  /** Covers at least these rows: reading is a little ahead of them. */
  readonly pin: SourcePin;
  readonly ended: boolean;
}

export class OpenBatch {
  readonly #options: RowOptions;
  readonly #prompts: Prompt[] = [];
  readonly #rejected: RejectedRow[] = [];
  #rows = 0;
  #bytes = 0;

  constructor(options: RowOptions) {
    this.#options = options;
  }

  /** Returns how many prompts the row gave. `file` is said where there are several. */
  add(row: RawRow, file: string | undefined): 0 | 1 {
    this.#rows += 1;
    this.#bytes += row.byteLength;
    if (row.kind === 'blank') return 0;
    const read = this.#read(row);
    if (read.kind === 'rejected') {
      const { reason, detail } = read;
      const place = file === undefined ? {} : { file };
      this.#rejected.push({ row: row.number, reason, detail, excerpt: excerptOf(row), ...place });
      return 0;
    }
    this.#prompts.push(read.prompt);
    return 1;
  }

  isFull(): boolean {
    return this.#rows >= MOST_BATCH_ROWS || this.#bytes >= MOST_BATCH_BYTES;
  }

  close(rows: number, pin: SourcePin, ended: boolean): SourceBatch {
    return { prompts: this.#prompts, rejected: this.#rejected, rows, pin, ended };
  }

  #read(row: Exclude<RawRow, { kind: 'blank' }>): ReadPrompt | Rejection {
    switch (row.kind) {
      case 'text':
        return readRow(row.bytes, this.#options);
      case 'value':
        return readRowValue(row.value, this.#options);
      case 'too-long':
        return { kind: 'rejected', reason: 'too-long-line', detail: `${formatCount(row.byteLength)} bytes` };
      case 'refused':
        return { kind: 'rejected', reason: row.reason, detail: row.detail };
    }
  }
}

function excerptOf(row: Exclude<RawRow, { kind: 'blank' }>): string {
  if (row.kind === 'value') return excerptText(shortJson(row.value), EXCERPT_CHARACTERS);
  return excerptBytes(row.kind === 'text' ? row.bytes : row.start, EXCERPT_CHARACTERS);
}

/** The beginning of the JSON that a value would be, without writing a long one out. */
function shortJson(value: unknown): string {
  const short = JSON.stringify(value, (_key, below: unknown) => {
    if (typeof below === 'string') return below.slice(0, EXCERPT_CHARACTERS);
    return Array.isArray(below) ? below.slice(0, EXCERPT_CHARACTERS) : below;
  });
  return short ?? '';
}
