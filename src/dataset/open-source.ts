/**
 * A partition's source: a local file of JSON lines, plain or gzip → batches of prompts and refused rows.
 *
 * Promises: memory is bounded by one batch and one line, whatever the size of the file; a bad row is a value, never an
 * exception; `batches({ skipRows: n })` gives the same rows as the tail of a reading from the start; the last batch, and
 * only it, has `ended: true` and a pin that covers the whole file.
 * On failure: `source.missing` or `source.unreadable` for a file that is not there or is not what its name says; on abort
 * the signal's own reason. Whether the file changes while it is read is not looked at: the pin will tell (`sourceDiffers`).
 */
import { open } from 'node:fs/promises';
import type { Prompt } from '../base/conversation.ts';
import { formatCount } from '../base/units.ts';
import { excerptBytes } from './excerpt-text.ts';
import { readRow } from './read-row.ts';
import type { RejectionReason } from './rejection.ts';
import type { SourceDifference } from './source-differs.ts';
import { sourceDiffers, statSource } from './source-differs.ts';
import { fileSystemError, hasKnownSuffix, missingSource, notGzip, unsupportedSuffix } from './source-errors.ts';
import type { SourcePin } from './source-pin.ts';
import type { Line } from './split-lines.ts';
import { splitLines } from './split-lines.ts';
import type { StoredBytes } from './stored-bytes.ts';
import { gunzipChunks, readStoredBytes } from './stored-bytes.ts';

/** Rows of a batch: one ledger transaction each, so that its cost is spread over hundreds of rows. */
const MOST_BATCH_ROWS = 512;
/** Bytes of a batch's lines: parsing them holds the event loop for some 30 ms. One longer line is a batch of its own. */
const MOST_BATCH_BYTES = 4 * 2 ** 20;
/** Characters of a refused line that are kept: enough to recognise it by. */
const EXCERPT_CHARACTERS = 200;

export interface RejectedRow {
  /** Line of the file, counted from 1. */
  readonly row: number;
  readonly reason: RejectionReason;
  readonly detail: string;
  /** The beginning of the line, safe to print. */
  readonly excerpt: string;
}

export interface SourceBatch {
  readonly prompts: readonly Prompt[];
  readonly rejected: readonly RejectedRow[];
  /** Rows (lines, blank ones included) consumed since the start of the source. */
  readonly rows: number;
  /** Covers at least these rows: reading is a little ahead of them. */
  readonly pin: SourcePin;
  readonly ended: boolean;
}

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
  compareWithPin(pin: SourcePin): Promise<SourceDifference | undefined>;
}

export async function openSource(path: string): Promise<Source> {
  if (!hasKnownSuffix(path)) throw (await statIfLocal(path)) === undefined ? await missingSource(path) : unsupportedSuffix(path);
  const found = await statSource(path);
  if (found === undefined) throw await missingSource(path);
  const isGzip = await hasGzipMagic(path);
  if (!isGzip && path.toLowerCase().endsWith('.gz')) throw notGzip(path, found.bytes);
  const pin: SourcePin = { path, ...found, sha256: '', hashedBytes: 0 };
  return {
    pin,
    batches: (request) => readBatches(pin, isGzip, request),
    compareWithPin: (before) => sourceDiffers(before, path),
  };
}

/** A hub path is no file, and its suffix is not what is wrong with it. */
async function statIfLocal(path: string): Promise<unknown> {
  return path.startsWith('hf://') ? 'hub' : statSource(path);
}

async function hasGzipMagic(path: string): Promise<boolean> {
  try {
    const handle = await open(path, 'r');
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2);
      return bytesRead === 2 && buffer[0] === 0x1f && buffer[1] === 0x8b;
    } finally {
      await handle.close();
    }
  } catch (thrown) {
    throw await fileSystemError(path, thrown);
  }
}

async function* readBatches(
  opened: SourcePin,
  isGzip: boolean,
  request: BatchRequest,
): AsyncGenerator<SourceBatch, void, undefined> {
  const { skipRows, mostPrompts = Number.POSITIVE_INFINITY, signal } = request;
  if (mostPrompts <= 0) return;
  const stored = readStoredBytes(opened.path, signal);
  const text = isGzip ? gunzipChunks(stored, opened.bytes) : stored.chunks();
  let batch = new OpenBatch();
  let rows = 0;
  let promptCount = 0;
  for await (const lines of splitLines(text)) {
    for (const line of lines) {
      rows = line.number;
      if (rows <= skipRows) continue;
      promptCount += batch.add(line);
      if (promptCount < mostPrompts && !batch.isFull()) continue;
      signal?.throwIfAborted();
      yield batch.close(rows, pinNow(opened, stored, false), false);
      if (promptCount >= mostPrompts) return;
      batch = new OpenBatch();
    }
  }
  signal?.throwIfAborted();
  yield batch.close(rows, pinNow(opened, stored, true), true);
}

/** At the end the size is what was read: if the file grew meanwhile, size and time no longer agree with it and the next look hashes. */
function pinNow(opened: SourcePin, stored: StoredBytes, ended: boolean): SourcePin {
  const hashed = stored.hashed();
  return { ...opened, bytes: ended ? hashed.hashedBytes : opened.bytes, ...hashed };
}

class OpenBatch {
  readonly #prompts: Prompt[] = [];
  readonly #rejected: RejectedRow[] = [];
  #rows = 0;
  #bytes = 0;

  /** Returns how many prompts the line gave. */
  add(line: Line): 0 | 1 {
    this.#rows += 1;
    this.#bytes += line.byteLength;
    if (line.kind === 'blank') return 0;
    if (line.kind === 'too-long') {
      this.#reject(line.number, line.start, 'too-long-line', `${formatCount(line.byteLength)} bytes`);
      return 0;
    }
    const read = readRow(line.bytes);
    if (read.kind === 'rejected') {
      this.#reject(line.number, line.bytes, read.reason, read.detail);
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

  #reject(row: number, line: Uint8Array, reason: RejectionReason, detail: string): void {
    this.#rejected.push({ row, reason, detail, excerpt: excerptBytes(line, EXCERPT_CHARACTERS) });
  }
}
