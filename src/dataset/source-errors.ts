/** The sentences for a source that cannot be read: what it is, with numbers, and what to type. Pure but for looking at the folder of a missing file. */
import { readdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AerieError, systemCodeOf } from '../base/errors.ts';
import { formatCount } from '../base/units.ts';
import { findNearest } from '../spec/nearest.ts';

export const SOURCE_SUFFIXES = [
  ...['.jsonl', '.ndjson', '.json', '.csv'],
  ...['.jsonl.gz', '.ndjson.gz', '.json.gz', '.csv.gz'],
  '.parquet',
] as const;

export function hasKnownSuffix(path: string): boolean {
  return SOURCE_SUFFIXES.some((suffix) => path.toLowerCase().endsWith(suffix));
}

export function unsupportedSuffix(path: string): AerieError {
  const suffix = /\.[^.]+(?:\.gz)?$/i.exec(basename(path))?.[0] ?? '';
  const ending =
    suffix === '' ? 'has no suffix, so its format is not known' : `ends in ${suffix}, which is not a format that is read`;
  const near = findNearest(suffix, SOURCE_SUFFIXES);
  const rename = near === undefined ? [] : [`If it holds one JSON object per line, rename it to end in ${near}.`];
  const target = `${path.slice(0, path.length - suffix.length)}.jsonl`;
  const convert = /parquet\.gz$/i.test(suffix)
    ? `Parquet compresses inside:  gunzip ${path}`
    : `Convert it to lines of JSON, and name that file under from: (${target}, for instance).`;
  return new AerieError('source.unreadable', `${path} ${ending}.`, {
    because: `What is read: ${SOURCE_SUFFIXES.join(', ')}.`,
    remedy: [...(/\.gz$/i.test(suffix) ? [] : rename), convert].join('\n'),
    facts: { path, suffix },
  });
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
          : `The folder ${folder} holds ${formatCount(names.length)} entries, ${formatCount(readable.length)} of them with a suffix that is read.`,
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

export function noMatch(pattern: string, others: readonly string[]): AerieError {
  const shown = others.slice(0, 5).join(', '); // 5: enough to see what is there
  return new AerieError('source.missing', `No file matches ${pattern}.`, {
    because:
      others.length === 0 ? 'There is no file with a suffix that is read.' : `There are ${formatCount(others.length)}: ${shown}.`,
    remedy: 'Change from: in the run file; * does not cross a folder, ** does.',
    facts: { pattern, found: others.length },
  });
}
