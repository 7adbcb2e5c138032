/**
 * Whether a source, of one file or of many, is still what it was when it was read. Files that nobody had begun to read may
 * change freely, but which files there are may not: the rows that follow are counted over all of them. What came from the
 * hub is pinned by its commit and cannot change.
 */
import { basename } from 'node:path';
import { isHubPath } from '../spec/hub-path.ts';
import { type SourceDifference, sourceDiffers, statSource } from './source-differs.ts';
import { listLocalPaths } from './source-files.ts';
import type { PartPin, SourcePin } from './source-pin.ts';

export async function compareSource(
  pin: SourcePin,
  from: readonly string[],
  signal?: AbortSignal,
): Promise<SourceDifference | undefined> {
  if (pin.files === undefined) return sourceDiffers(pin, from[0] ?? pin.path, signal);
  const parts = pin.files.filter(({ path }) => !isHubPath(path));
  const local = await Promise.all(from.filter((path) => !isHubPath(path)).map(listLocalPaths));
  const paths = local.flat();
  // By place and name, so that a project that was moved as a whole is still the same.
  const isSameList = paths.length === parts.length && parts.every((part, at) => isSameName(part.path, paths[at] ?? ''));
  if (!isSameList) return findOther(parts, paths, pin.bytes);
  let missing: SourceDifference | undefined;
  for (const [at, part] of parts.entries()) {
    const path = paths[at] as string;
    const isBegun = part.rows > 0 || part.isWhole;
    const found = isBegun ? await sourceDiffers(part, path, signal) : await findMissing(path, part.bytes);
    if (found !== undefined && found.what !== 'missing') return found;
    missing ??= found;
  }
  return missing;
}

/** Of the same name in whatever folder. */
export function isSameName(a: string, b: string): boolean {
  return basename(a) === basename(b);
}

async function findMissing(path: string, pinnedBytes: number): Promise<SourceDifference | undefined> {
  return (await statSource(path)) === undefined ? { what: 'missing', path, pinnedBytes } : undefined;
}

async function findOther(parts: readonly PartPin[], paths: readonly string[], pinnedBytes: number): Promise<SourceDifference> {
  const known = new Set(parts.map(({ path }) => path));
  const appeared = paths.find((path) => !known.has(path));
  if (appeared !== undefined) {
    return { what: 'appeared', path: appeared, pinnedBytes, bytes: (await statSource(appeared))?.bytes ?? 0 };
  }
  const gone = parts.find(({ path }) => !paths.includes(path));
  return { what: 'missing', path: gone?.path ?? '', pinnedBytes: gone?.bytes ?? pinnedBytes };
}
