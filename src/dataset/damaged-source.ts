/** The sentences for a source file that is there and is not what its name says, with numbers and what to type. Pure. */
import { AerieError } from '../base/errors.ts';
import { formatCount } from '../base/units.ts';
import { excerptText } from './excerpt-text.ts';
import type { JsonTrouble } from './split-json.ts';

const SAFE = 'Nothing of it was enrolled beyond the rows already counted.';

export function notGzip(path: string, bytes: number): AerieError {
  return new AerieError(
    'source.unreadable',
    `${path} is named .gz, but its ${formatCount(bytes)} bytes do not begin with 1f 8b.`,
    {
      because: 'Every gzip file begins with these two bytes.',
      remedy:
        bytes === 0 ? 'The file is empty: copy it again.' : 'If it is plain text, rename it without .gz; else copy it again.',
      facts: { path, bytes },
    },
  );
}

export interface GzipFailure {
  readonly path: string;
  /** Stored bytes read when it failed, and stored bytes in all. */
  readonly readBytes: number;
  readonly bytes: number;
  readonly because: string;
}

export function damagedGzip({ path, readBytes, bytes, because }: GzipFailure, cause?: unknown): AerieError {
  return new AerieError(
    'source.unreadable',
    `${path} breaks off as gzip within the first ${formatCount(readBytes)} of its ${formatCount(bytes)} bytes.`,
    {
      because,
      remedy: `gzip -t ${path}    shows whether the copy is whole; copy it again and run the same command.\n${SAFE}`,
      facts: { path, readBytes, bytes },
    },
    cause,
  );
}

export function notParquet(path: string, bytes: number): AerieError {
  return new AerieError(
    'source.unreadable',
    `${path} is named .parquet, but its ${formatCount(bytes)} bytes do not begin with PAR1.`,
    {
      because: 'Every Parquet file begins and ends with these four bytes.',
      remedy: bytes === 0 ? 'The file is empty: copy it again.' : 'Give it the suffix of what it is, or copy it again.',
      facts: { path, bytes },
    },
  );
}

export function parquetByAnotherName(path: string): AerieError {
  return new AerieError('source.unreadable', `${path} begins with PAR1, as every Parquet file does, but is named otherwise.`, {
    remedy: `Rename it to end in .parquet:  mv ${path} ${path.replace(/\.[^./]*$/, '')}.parquet`,
    facts: { path },
  });
}

export function damagedParquet(path: string, bytes: number, cause: unknown): AerieError {
  return new AerieError(
    'source.unreadable',
    `${path} cannot be read as Parquet (${formatCount(bytes)} bytes).`,
    {
      because: explainParquetError(cause),
      remedy: `python3 -c "import pyarrow.parquet; pyarrow.parquet.read_table('${path}')"    shows whether the copy is whole; copy it again and run the same command.\n${SAFE}`,
      facts: { path, bytes },
    },
    cause,
  );
}

/** A few damaged bytes say that values without number follow. */
export function endlessParquet(path: string, bytes: number, afterMs: number): AerieError {
  return new AerieError('source.unreadable', `${path} was given up: decoding did not end in ${Math.round(afterMs / 1000)} s.`, {
    because: 'Damaged Parquet can ask for more values than there are.',
    remedy: `python3 -c "import pyarrow.parquet; pyarrow.parquet.read_table('${path}')"    shows whether the copy is whole; copy it again and run the same command.\n${SAFE}`,
    facts: { path, bytes },
  });
}

/** A TypeError or RangeError is the reader stumbling over what a damaged file says: its words are about the reader, not the file. */
function explainParquetError(cause: unknown): string {
  if (cause instanceof TypeError || cause instanceof RangeError) return 'What its footer says of the columns is not whole.';
  return excerptText(cause instanceof Error ? cause.message : String(cause), 300); // foreign text, of one line
}

export function largeRowGroup(path: string, bytes: number, most: number): AerieError {
  const target = path.replace(/\.parquet$/i, '-small-groups.parquet');
  return new AerieError('source.unreadable', `${path} has a row group of ${formatCount(bytes)} bytes, too large to hold.`, {
    because: `A row group without an index of its pages is read as a whole; at most ${formatCount(most)} bytes of the columns needed fit.`,
    remedy: `python3 -c "import pyarrow.parquet as p; p.write_table(p.read_table('${path}'), '${target}', row_group_size=1000)"\n${SAFE}`,
    facts: { path, bytes, most },
  });
}

export function damagedCsv(path: string, readBytes: number, because: string): AerieError {
  return new AerieError('source.unreadable', `${path} cannot be read on as CSV; ${formatCount(readBytes)} bytes were read.`, {
    because,
    remedy: `Correct that place of the file and run the same command again.\n${SAFE}`,
    facts: { path, readBytes },
  });
}

const JSON_TROUBLE: Readonly<Record<JsonTrouble, readonly [because: string, remedy: string]>> = {
  empty: ['There is nothing in it.', 'Copy it again.'],
  cut: ['It ends before its list does.', 'Copy it again and run the same command.'],
  'no-list': [
    'It is not one list of rows, nor one object with such a list under data or rows.',
    'If it holds one object per line, rename it to end in .jsonl.',
  ],
  'more-behind': ['Something follows the end of its list.', 'If it holds one object per line, rename it to end in .jsonl.'],
};

export function damagedJson(path: string, readBytes: number, trouble: JsonTrouble): AerieError {
  const [because, remedy] = JSON_TROUBLE[trouble];
  return new AerieError('source.unreadable', `${path} is not one list of rows; ${formatCount(readBytes)} bytes were read.`, {
    because,
    remedy: `${remedy}\n${SAFE}`,
    facts: { path, readBytes },
  });
}
