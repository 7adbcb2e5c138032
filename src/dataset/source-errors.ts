/** The sentences for a source that cannot be read: what it is, with numbers, and what to type. Pure but for looking at the folder of a missing file. */
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AerieError, systemCodeOf } from '../base/errors.ts';
import { formatCount } from '../base/units.ts';
import { findNearest } from '../spec/nearest.ts';

export const SOURCE_SUFFIXES = ['.jsonl', '.ndjson', '.jsonl.gz', '.ndjson.gz'] as const;

const SAFE = 'Nothing of it was enrolled beyond the rows already counted.';

export function hasKnownSuffix(path: string): boolean {
  return SOURCE_SUFFIXES.some((suffix) => path.toLowerCase().endsWith(suffix));
}

export function unsupportedSuffix(path: string): AerieError {
  const suffix = /\.[^.]+(?:\.gz)?$/i.exec(basename(path))?.[0] ?? '';
  const isHub = path.startsWith('hf://');
  const ending =
    suffix === '' ? 'has no suffix, so its format is not known' : `ends in ${suffix}, which is not a format that is read`;
  const near = findNearest(suffix, SOURCE_SUFFIXES);
  const rename = near === undefined ? [] : [`If it holds one JSON object per line, rename it to end in ${near}.`];
  return new AerieError(
    'source.unreadable',
    isHub ? `${path} is on the hub; this version reads local files.` : `${path} ${ending}.`,
    {
      because: `Sources are lines of JSON: ${SOURCE_SUFFIXES.join(', ')}.`,
      remedy: isHub
        ? 'Download the data set, convert it to .jsonl, and name that file under from:.'
        : [...rename, ...convertCommand(path, suffix.toLowerCase())].join('\n'),
      facts: { path, suffix },
    },
  );
}

function convertCommand(path: string, suffix: string): readonly string[] {
  const target = `${path.slice(0, path.length - suffix.length)}.jsonl`;
  if (suffix === '.json') return [`If it holds one list of rows:  jq -c '.[]' ${path} > ${target}`];
  const loader = /^\.(parquet|csv)$/.exec(suffix)?.[1];
  if (loader === undefined) return [`Convert it to lines of JSON, and name that file under from: (${target}, for instance).`];
  return [`python3 -c "import pandas; pandas.read_${loader}('${path}').to_json('${target}', orient='records', lines=True)"`];
}

export async function missingSource(path: string, cause?: unknown): Promise<AerieError> {
  const folder = dirname(path);
  const names = await readdir(folder).catch(() => undefined);
  const readable = names?.filter(hasKnownSuffix) ?? [];
  const near = findNearest(basename(path), readable);
  return new AerieError(
    'source.missing',
    `${path} is not there.`,
    {
      because:
        names === undefined
          ? `The folder ${folder} is not there either, or cannot be listed.`
          : `The folder ${folder} holds ${formatCount(names.length)} entries, ${formatCount(readable.length)} of them .jsonl or .ndjson.`,
      remedy:
        near === undefined
          ? 'Change from: in the run file; a relative path counts from the folder of the run file.'
          : `Did you mean ${join(folder, near)}? Change from: in the run file.`,
      facts: { path },
    },
    cause,
  );
}

/** Whatever the file system said about a path: gone, or there and not readable. */
export async function fileSystemError(path: string, thrown: unknown): Promise<AerieError> {
  const code = systemCodeOf(thrown);
  if (code === 'ENOENT' || code === 'ENOTDIR') return missingSource(path, thrown);
  const isForbidden = code === 'EACCES' || code === 'EPERM';
  return new AerieError(
    'source.unreadable',
    isForbidden ? `${path} may not be read by this user.` : `${path} cannot be read: ${code === '' ? 'no system code' : code}.`,
    {
      because: thrown instanceof Error ? thrown.message : String(thrown),
      remedy: isForbidden
        ? `chmod u+r ${path}`
        : `Try  cat ${path} >/dev/null  to see whether the disk gives it; then run the same command again.`,
      facts: { path, system: code },
    },
    thrown,
  );
}

export function notAFile(path: string, isFolder: boolean): AerieError {
  return new AerieError('source.unreadable', `${path} is ${isFolder ? 'a folder' : 'not a regular file'}.`, {
    because: 'A source is read again from its start on a resume, so it must be a file.',
    remedy: isFolder
      ? `Name one file in it under from:, or join them:  cat ${path}/*.jsonl > all.jsonl`
      : `Copy it to a file first:  cat ${path} > source.jsonl`,
    facts: { path },
  });
}

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
