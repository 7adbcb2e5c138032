/**
 * Bytes of a CSV file, in any chunks → rows by the names of its first line. RFC 4180: commas, double quotes, line feeds
 * inside quotes; a byte order mark is taken off.
 *
 * Promises: fields are decoded one by one and bad UTF-8 is refused, never replaced; a row whose count of fields is not the
 * header's is refused; one record is held at a time, at most 64 MiB of a field; rows are numbered without the header.
 * On failure: `CsvTrouble`, where the file as a whole cannot be read on: a quote that does not close, a header that is no header.
 */
import { type CsvError, type Options, parse } from 'csv-parse';
import { formatCount } from '../base/units.ts';
import type { RawRow } from './raw-row.ts';
import { MOST_LINE_BYTES } from './split-lines.ts';

export class CsvTrouble extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'CsvTrouble';
  }
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
/** The byte order mark. */
const MARK = [0xef, 0xbb, 0xbf] as const;
/** Of a record that is refused, for its excerpt. */
const KEPT_BYTES = 800;

export async function* readCsvRows(
  chunks: AsyncIterable<Uint8Array>,
  mostBytes: number = MOST_LINE_BYTES,
): AsyncGenerator<readonly RawRow[], void, undefined> {
  const gathering = new CsvRows();
  const options: Options = {
    encoding: null, // fields as bytes: the library would turn bad UTF-8 into U+FFFD
    // Named, because the library's own guess joins two rows after a quoted field that holds a line end.
    record_delimiter: ['\r\n', '\n', '\r'],
    relax_column_count: true, // counted here, so that a ragged row is refused and the next one read
    relax_quotes: true, // a quote inside a field that is not quoted is a character like any other, as spreadsheets have it
    skip_empty_lines: true,
    max_record_size: mostBytes,
    on_record: (record) => {
      gathering.add(record as unknown as readonly Buffer[]); // bytes, as encoding says
      return null;
    },
  };
  const parser = parse(options);
  // The library would take the mark off too, and then give text instead of bytes.
  for await (const chunk of withoutMark(chunks)) {
    await feed(parser, chunk);
    const rows = gathering.take();
    if (rows.length > 0) yield rows;
  }
  await feed(parser, undefined);
  const last = gathering.take();
  if (last.length > 0) yield last;
}

async function* withoutMark(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  let head: Uint8Array | undefined = new Uint8Array(0);
  for await (const chunk of chunks) {
    if (head === undefined) yield chunk;
    else {
      head = Buffer.concat([head, chunk]);
      if (head.length < MARK.length) continue;
      yield MARK.every((byte, at) => byte === head?.[at]) ? head.subarray(MARK.length) : head;
      head = undefined;
    }
  }
  if (head !== undefined && head.length > 0) yield head;
}

type Parser = ReturnType<typeof parse>;

/** The parser works while it is written to; undefined = the end. */
async function feed(parser: Parser, chunk: Uint8Array | undefined): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const onError = (thrown: CsvError) => reject(new CsvTrouble(explain(thrown)));
    parser.once('error', onError);
    const done = () => {
      parser.off('error', onError);
      resolve();
    };
    if (chunk !== undefined) {
      parser.write(chunk, (failed) => (failed ? onError(failed as CsvError) : done()));
      return;
    }
    parser.once('end', done);
    parser.resume();
    parser.end();
  });
}

function explain(thrown: CsvError): string {
  const at = typeof thrown['lines'] === 'number' ? ` (line ${formatCount(thrown['lines'])})` : '';
  switch (thrown.code) {
    case 'CSV_QUOTE_NOT_CLOSED':
      return `a quoted field that is open${at} does not close before the end of the file`;
    case 'CSV_MAX_RECORD_SIZE':
      return `a field is longer than 64 MiB${at}; a quote that does not close reads like this too`;
    default:
      return thrown.message;
  }
}

class CsvRows {
  #names: readonly string[] | undefined;
  #number = 0;
  #rows: RawRow[] = [];

  take(): readonly RawRow[] {
    return this.#rows.splice(0);
  }

  add(fields: readonly Buffer[]): void {
    if (this.#names === undefined) this.#names = readHeader(fields);
    else this.#rows.push(this.#toRow(fields, this.#names));
  }

  #toRow(fields: readonly Buffer[], names: readonly string[]): RawRow {
    this.#number += 1;
    const place = { number: this.#number, byteLength: fields.reduce((sum, field) => sum + field.length + 1, 0) };
    if (fields.length !== names.length) {
      const detail = `the row has ${formatCount(fields.length)} fields, the header ${formatCount(names.length)}`;
      return { kind: 'refused', ...place, reason: 'ragged-row', detail, start: startOf(fields) };
    }
    const value: Record<string, string> = Object.create(null) as Record<string, string>;
    for (const [at, name] of names.entries()) {
      const field = fields[at] as Buffer;
      try {
        value[name] = UTF8.decode(field);
      } catch {
        return { kind: 'refused', ...place, reason: 'bad-utf8', detail: `in column ${name}`, start: startOf(fields) };
      }
    }
    return { kind: 'value', ...place, value };
  }
}

function startOf(fields: readonly Buffer[]): Uint8Array {
  const parts: Buffer[] = [];
  let bytes = 0;
  for (const field of fields) {
    if (bytes >= KEPT_BYTES) break;
    const part = field.subarray(0, KEPT_BYTES - bytes);
    parts.push(...(parts.length > 0 ? [Buffer.from(',')] : []), part);
    bytes += part.length + 1;
  }
  return Buffer.concat(parts);
}

function readHeader(fields: readonly Buffer[]): readonly string[] {
  let names: readonly string[];
  try {
    names = fields.map((field) => UTF8.decode(field).trim());
  } catch {
    throw new CsvTrouble('the first line, which names the columns, is not UTF-8');
  }
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw new CsvTrouble(`the first line names the column ${JSON.stringify(twice.slice(0, 60))} twice`);
  return names;
}
