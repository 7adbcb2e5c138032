/** The formats of a source file, told by the suffix, and who reads each. */
import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import { CsvTrouble, readCsvRows } from './csv-rows.ts';
import { damagedCsv, damagedJson, notGzip, notParquet, parquetByAnotherName } from './damaged-source.ts';
import { readParquetRows } from './parquet-rows.ts';
import type { RawRow, RowReader } from './raw-row.ts';
import type { FileStat } from './source-differs.ts';
import { fileSystemError } from './source-errors.ts';
import { JsonSplitter } from './split-json.ts';
import { splitLines } from './split-lines.ts';
import type { StoredBytes } from './stored-bytes.ts';
import { gunzipChunks, readStoredBytes } from './stored-bytes.ts';

export type Format = 'lines' | 'json' | 'csv' | 'parquet';

const SUFFIXES: readonly (readonly [string, Format])[] = [
  ['.jsonl', 'lines'],
  ['.ndjson', 'lines'],
  ['.json', 'json'],
  ['.csv', 'csv'],
  ['.parquet', 'parquet'],
];

export function formatOf(path: string): Format | undefined {
  const name = basename(path).toLowerCase();
  const bare = name.endsWith('.gz') ? name.slice(0, -'.gz'.length) : name;
  const format = SUFFIXES.find(([suffix]) => bare.endsWith(suffix))?.[1];
  return format === 'parquet' && bare !== name ? undefined : format;
}

export interface FileToRead extends FileStat {
  readonly path: string;
  readonly format: Format;
}

/** Looks at the first bytes: a file that is not what its name says is refused before a row is read. */
export async function openRows(
  file: FileToRead,
  columns: readonly string[],
  signal: AbortSignal | undefined,
): Promise<RowReader> {
  const { path, bytes, format } = file;
  const head = await readHead(path);
  const isParquet = head.toString('latin1') === 'PAR1';
  if (format === 'parquet') {
    if (!isParquet) throw notParquet(path, bytes);
    return readParquetRows({ path, bytes, columns, signal });
  }
  if (isParquet) throw parquetByAnotherName(path);
  const isGzip = head[0] === 0x1f && head[1] === 0x8b;
  if (!isGzip && path.toLowerCase().endsWith('.gz')) throw notGzip(path, bytes);
  const stored = readStoredBytes(path, signal);
  const text = isGzip ? gunzipChunks(stored, bytes) : stored.chunks();
  const rows = {
    lines: splitLines,
    json: (chunks: Text) => jsonRows(chunks, stored),
    csv: (chunks: Text) => csvRows(chunks, stored),
  };
  return { rows: () => rows[format](text), hashed: () => stored.hashed() };
}

type Text = AsyncIterable<Uint8Array>;
type Rows = AsyncGenerator<readonly RawRow[], void, undefined>;

async function* jsonRows(chunks: Text, stored: StoredBytes): Rows {
  const splitter = new JsonSplitter();
  for await (const chunk of chunks) {
    const rows = splitter.push(chunk);
    if (rows.length > 0) yield rows;
    if (splitter.isHopeless) break;
  }
  const trouble = splitter.end();
  if (trouble !== undefined) throw damagedJson(stored.path, stored.hashed().hashedBytes, trouble);
}

async function* csvRows(chunks: Text, stored: StoredBytes): Rows {
  try {
    yield* readCsvRows(chunks);
  } catch (thrown) {
    throw thrown instanceof CsvTrouble ? damagedCsv(stored.path, stored.hashed().hashedBytes, thrown.message) : thrown;
  }
}

async function readHead(path: string): Promise<Buffer> {
  try {
    const handle = await open(path, 'r');
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(4));
      return buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch (thrown) {
    throw await fileSystemError(path, thrown);
  }
}
