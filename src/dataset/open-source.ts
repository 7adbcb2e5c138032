/**
 * A partition's source: one file or several, here or on the hub → batches of prompts and refused rows.
 *
 * Promises: memory is bounded by one batch and what the format needs at once (one line, one row group), whatever the size of
 * the files; a bad row is a value, never an exception; `batches({ skipRows: n })` gives the same rows as the tail of a
 * reading from the start; the last batch, and only it, has `ended: true` and a pin that covers all files whole.
 * On failure: `source.missing` or `source.unreadable` for a file that is not there or is not what its name says, `hub.…` for
 * one that cannot be fetched; on abort the signal's own reason. Whether a file changes while it is read is not looked at:
 * the pin will tell (`sourceDiffers`).
 */
import { isSameName } from './compare-source.ts';
import { openRows } from './formats.ts';
import type { HubUse } from './hub-source.ts';
import type { RawRow, RowReader } from './raw-row.ts';
import { PLAIN_ROWS, type RowOptions } from './read-row.ts';
import { wantedColumns } from './row-shape.ts';
import { OpenBatch, type SourceBatch } from './source-batch.ts';
import { statSource } from './source-differs.ts';
import { missingSource } from './source-errors.ts';
import type { SourceFile } from './source-file.ts';
import { type FoundFiles, findSourceFiles } from './source-files.ts';
import type { PartPin, SourcePin } from './source-pin.ts';

export type { RejectedRow, SourceBatch } from './source-batch.ts';

export interface BatchRequest {
  /** Rows to pass over, hashed and counted, but not parsed. */
  readonly skipRows: number;
  /** Stop after the row that gave this many prompts; left out = all. */
  readonly mostPrompts?: number;
  readonly signal?: AbortSignal;
}

export interface Source {
  /** As found at opening; nothing hashed yet. */
  readonly pin: SourcePin;
  batches(request: BatchRequest): AsyncGenerator<SourceBatch, void, undefined>;
}

export interface SourceOptions extends HubUse {
  readonly rows?: RowOptions;
}

/** With the pin of an earlier reading, files that were read whole are passed over without being opened. */
export async function openSource(from: readonly string[], options: SourceOptions = {}): Promise<Source> {
  const found = await findSourceFiles(from, options);
  const begun = options.pin?.files ?? [];
  const parts = found.files.map(({ path, stat }, at): PartPin => {
    const part = begun[at];
    const isKnown = part !== undefined && isSameName(part.path, path) && part.bytes === stat.bytes;
    return isKnown ? { ...part, path } : { path, ...stat, sha256: '', hashedBytes: 0, rows: 0, isWhole: false };
  });
  const fresh = parts.map((part) => ({ ...part, sha256: '', hashedBytes: 0, rows: 0, isWhole: false }));
  return {
    pin: sumPins(found, fresh),
    batches: (request) => readBatches({ found, parts, options: options.rows ?? PLAIN_ROWS }, request),
  };
}

interface Opened {
  readonly found: FoundFiles;
  readonly parts: readonly PartPin[];
  readonly options: RowOptions;
}

async function* readBatches(opened: Opened, request: BatchRequest): AsyncGenerator<SourceBatch, void, undefined> {
  if ((request.mostPrompts ?? 1) <= 0) return;
  const reading = new Reading(opened, request);
  for (let at = 0; at < opened.found.files.length && !reading.hasEnough; at += 1) yield* reading.readFile(at);
  if (!reading.hasEnough) yield reading.close(true);
}

/** One reading of a source, file after file. */
class Reading {
  hasEnough = false;
  readonly #opened: Opened;
  readonly #request: BatchRequest;
  readonly #parts: PartPin[];
  #batch: OpenBatch;
  /** Rows of the files before, and of this one. */
  #before = 0;
  #rows = 0;
  #promptCount = 0;

  constructor(opened: Opened, request: BatchRequest) {
    this.#opened = opened;
    this.#request = request;
    this.#parts = [...opened.parts];
    this.#batch = new OpenBatch(opened.options);
  }

  async *readFile(at: number): AsyncGenerator<SourceBatch, void, undefined> {
    const { found, options } = this.#opened;
    const { skipRows, signal } = this.#request;
    const known = this.#parts[at] as PartPin;
    if (known.isWhole && this.#before + known.rows <= skipRows) {
      this.#before += known.rows;
      return;
    }
    const file = found.files[at] as SourceFile;
    const reader = await openFile(file, options, signal);
    const name = found.isSingle ? undefined : file.path;
    for await (const group of reader.rows(Math.max(0, skipRows - this.#before))) {
      for (const row of group) {
        if (!this.#take(row, name)) continue;
        this.#parts[at] = partNow(file, reader, this.#rows, false);
        yield this.close(false);
        if (this.hasEnough) return;
      }
    }
    this.#parts[at] = partNow(file, reader, this.#rows, true);
    this.#before += this.#rows;
    this.#rows = 0;
  }

  /** True where the batch is to be handed over. */
  #take(row: RawRow, file: string | undefined): boolean {
    const { skipRows, mostPrompts = Number.POSITIVE_INFINITY } = this.#request;
    this.#rows = row.number;
    if (this.#before + this.#rows <= skipRows) return false;
    this.#promptCount += this.#batch.add(row, file);
    this.hasEnough = this.#promptCount >= mostPrompts;
    return this.hasEnough || this.#batch.isFull();
  }

  close(ended: boolean): SourceBatch {
    this.#request.signal?.throwIfAborted();
    const batch = this.#batch.close(this.#before + this.#rows, sumPins(this.#opened.found, this.#parts), ended);
    this.#batch = new OpenBatch(this.#opened.options);
    return batch;
  }
}

async function openFile(file: SourceFile, options: RowOptions, signal: AbortSignal | undefined): Promise<RowReader> {
  const path = await file.obtain(signal);
  const stat = await statSource(path);
  if (stat === undefined) throw await missingSource(path);
  return openRows({ path, format: file.format, ...stat }, wantedColumns(options.columns), signal);
}

/** At the end the size is what was read: if the file grew meanwhile, size and time no longer agree with it and the next look hashes. */
function partNow(file: SourceFile, reader: RowReader, rows: number, isWhole: boolean): PartPin {
  const hashed = reader.hashed();
  const bytes = isWhole ? hashed.hashedBytes : file.stat.bytes;
  return { path: file.path, mtimeMs: file.stat.mtimeMs, bytes, ...hashed, rows, isWhole };
}

function sumPins({ isSingle, path }: FoundFiles, parts: readonly PartPin[]): SourcePin {
  const [first] = parts;
  if (isSingle && first !== undefined) {
    const { rows: _, isWhole: __, ...pin } = first;
    return pin;
  }
  return {
    path,
    bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0),
    mtimeMs: parts.reduce((latest, { mtimeMs }) => Math.max(latest, mtimeMs), 0),
    sha256: '',
    hashedBytes: parts.reduce((sum, { hashedBytes }) => sum + hashedBytes, 0),
    files: [...parts],
  };
}
