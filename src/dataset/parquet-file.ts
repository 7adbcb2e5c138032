/**
 * A Parquet file → its rows as plain values, row group by row group, or page by page where the file has an index of them.
 * Read in a thread of its own (`parquet-rows.ts`): what a damaged file makes the decoder do has no bound.
 *
 * Promises: only the columns asked for are read, where any of them is there; a row group (or the pages of a slice) is all that is held; text that is not
 * UTF-8 is refused, never replaced; the pin hashes the file from its start to the end of the row groups read.
 * On failure: `source.unreadable` for what is no Parquet file, is cut or damaged, or has a row group too large to hold.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { type AsyncBuffer, type FileMetaData, parquetMetadataAsync, parquetReadObjects, type RowGroup } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { AerieError } from '../base/errors.ts';
import { formatCount } from '../base/units.ts';
import { damagedParquet, largeRowGroup } from './damaged-source.ts';
import { BAD_TEXT, holdsBadText, plainValue } from './parquet-values.ts';
import type { RawRow, RowReader } from './raw-row.ts';
import { fileSystemError } from './source-errors.ts';

/** Of the columns read, decompressed: decoding holds it two to three times over, and 4 GB is Node's heap on most machines. */
const MOST_GROUP_BYTES = 1024 * 2 ** 20;
/** A slice of a row group whose pages are indexed: decoding it holds the event loop for some 100 ms. */
const SLICE_BYTES = 32 * 2 ** 20;
const HASH_CHUNK_BYTES = 2 ** 20;

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function stringFromBytes(bytes: Uint8Array | undefined): unknown {
  if (bytes === undefined) return undefined;
  try {
    return UTF8.decode(bytes);
  } catch {
    return BAD_TEXT;
  }
}

/** JSON columns are read as text, which the row's own reader parses or refuses. */
const parsers = { stringFromBytes, jsonFromBytes: stringFromBytes };

export interface ParquetOptions {
  readonly path: string;
  readonly bytes: number;
  /** Names of columns that may matter; all are read where the file has none of them. */
  readonly columns: readonly string[];
  readonly signal: AbortSignal | undefined;
}

export function readParquetFile(options: ParquetOptions): RowReader {
  const hash = createHash('sha256');
  let hashedBytes = 0;

  async function hashTo(handle: FileHandle, end: number): Promise<void> {
    while (hashedBytes < end) {
      options.signal?.throwIfAborted();
      const piece = new Uint8Array(await readBytes(handle, hashedBytes, Math.min(end, hashedBytes + HASH_CHUNK_BYTES)));
      if (piece.length === 0) throw new Error(`the file ends at byte ${formatCount(hashedBytes)}`);
      hash.update(piece);
      hashedBytes += piece.length;
    }
  }

  async function* rows(skipRows: number): AsyncGenerator<readonly RawRow[], void, undefined> {
    const handle = await openFile(options.path);
    try {
      const file = {
        byteLength: options.bytes,
        slice: (start: number, end?: number) => readBytes(handle, start, end ?? options.bytes),
      };
      const metadata = await parquetMetadataAsync(file);
      const columns = chooseColumns(metadata, options.columns);
      let before = 0;
      for (const group of metadata.row_groups) {
        await hashTo(handle, endOf(group, options.bytes));
        yield* readGroup({ file, metadata, columns, group, before, options }, skipRows - before);
        before += Number(group.num_rows);
      }
      await hashTo(handle, options.bytes);
    } catch (thrown) {
      options.signal?.throwIfAborted();
      throw thrown instanceof AerieError ? thrown : damagedParquet(options.path, options.bytes, thrown);
    } finally {
      await handle.close();
    }
  }

  return { rows, hashed: () => ({ sha256: hash.copy().digest('hex'), hashedBytes }) };
}

interface GroupToRead {
  readonly file: AsyncBuffer;
  readonly metadata: FileMetaData;
  readonly columns: readonly string[] | undefined;
  readonly group: RowGroup;
  /** Rows of the groups before. */
  readonly before: number;
  readonly options: ParquetOptions;
}

async function* readGroup(read: GroupToRead, skipRows: number): AsyncGenerator<readonly RawRow[], void, undefined> {
  const { file, metadata, columns, group, before, options } = read;
  const count = Number(group.num_rows);
  const size = sizeOf(group, columns);
  const step = stepOf(group, count, size, options.path);
  const first = skippedSteps(skipRows, step, count);
  // Rows that are passed over still say how far the file has been read.
  if (first > 0) yield [{ kind: 'blank', number: before + first, byteLength: 0 }];
  for (let from = first; from < count; from += step) {
    options.signal?.throwIfAborted();
    const to = Math.min(count, from + step);
    const rows = await parquetReadObjects({
      ...{ file, metadata, compressors, parsers, useOffsetIndex: true, rowStart: before + from, rowEnd: before + to },
      ...(columns === undefined ? {} : { columns: [...columns] }),
    });
    if (rows.length !== to - from) throw new Error(`a row group of ${count} rows gave ${rows.length} of ${to - from}`);
    yield rows.map((row, at) => toRow(row, before + from + at + 1, Math.ceil(size / count)));
  }
}

function toRow(row: Readonly<Record<string, unknown>>, number: number, byteLength: number): RawRow {
  const value = plainValue(row);
  if (!holdsBadText(value)) return { kind: 'value', number, byteLength, value };
  return { kind: 'refused', number, byteLength, reason: 'bad-utf8', detail: 'a text of the row', start: new Uint8Array(0) };
}

/** Whole steps that lie before the first row wanted need no decoding. */
function skippedSteps(wanted: number, step: number, count: number): number {
  return wanted <= 0 ? 0 : Math.min(count, Math.floor(wanted / step) * step);
}

function stepOf(group: RowGroup, count: number, size: number, path: string): number {
  const isIndexed = group.columns.every(({ offset_index_offset }) => offset_index_offset !== undefined);
  if (isIndexed && size > SLICE_BYTES) return Math.max(1, Math.floor((count * SLICE_BYTES) / size));
  if (size > MOST_GROUP_BYTES) throw largeRowGroup(path, size, MOST_GROUP_BYTES);
  return Math.max(1, count);
}

/** Top-level columns to read, or undefined for all. */
function chooseColumns(metadata: FileMetaData, wanted: readonly string[]): readonly string[] | undefined {
  const there = new Set(metadata.row_groups.flatMap(({ columns }) => columns.map((column) => nameOf(column))));
  const chosen = wanted.filter((name) => there.has(name));
  return chosen.length === 0 ? undefined : chosen;
}

type Column = RowGroup['columns'][number];

function nameOf({ meta_data }: Column): string {
  return meta_data?.path_in_schema[0] ?? '';
}

function sizeOf(group: RowGroup, columns: readonly string[] | undefined): number {
  const read = group.columns.filter((column) => columns === undefined || columns.includes(nameOf(column)));
  return read.reduce((sum, { meta_data }) => sum + Number(meta_data?.total_uncompressed_size ?? 0), 0);
}

function endOf(group: RowGroup, bytes: number): number {
  const ends = group.columns.map(({ meta_data }) => {
    const start = Math.min(Number(meta_data?.dictionary_page_offset ?? Infinity), Number(meta_data?.data_page_offset ?? 0));
    return start + Number(meta_data?.total_compressed_size ?? 0);
  });
  return Math.min(bytes, Math.max(0, ...ends));
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (thrown) {
    throw await fileSystemError(path, thrown);
  }
}

/** Fewer bytes than asked for only at the end of the file. */
async function readBytes(handle: FileHandle, start: number, end: number): Promise<ArrayBuffer> {
  const length = end - start;
  // What a damaged file asks for is not allocated before it is known to be there.
  if (!(length >= 0) || length > (await handle.stat()).size) throw new RangeError(`bytes ${start} to ${end} are asked for`);
  const bytes = new Uint8Array(length);
  let got = 0;
  while (got < length) {
    const { bytesRead } = await handle.read(bytes, got, length - got, start + got);
    if (bytesRead === 0) return bytes.buffer.slice(0, got);
    got += bytesRead;
  }
  return bytes.buffer;
}
