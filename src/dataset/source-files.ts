/**
 * What stands under `from:` → the files of a source, in order: each entry of a list in turn, the matches of a pattern by
 * name. A path that is there as it is written is that file, whatever characters it holds.
 */
import { readdir } from 'node:fs/promises';
import { sep } from 'node:path';
import { isHubPath } from '../spec/hub-path.ts';
import { formatOf } from './formats.ts';
import { fixedFolderOf, isDeep, isPattern, matchPattern } from './glob.ts';
import { type HubUse, listHubSource } from './hub-source.ts';
import { type FileStat, statSource } from './source-differs.ts';
import { fileSystemError, missingSource, noMatch, unsupportedSuffix } from './source-errors.ts';
import { byCodeUnit, type SourceFile } from './source-file.ts';

export interface FoundFiles {
  readonly files: readonly SourceFile[];
  /** One plain path: its pin is the file's own. */
  readonly isSingle: boolean;
  /** What `from:` says, with the commits in it that the hub has given. */
  readonly path: string;
}

export async function findSourceFiles(from: readonly string[], hub: HubUse): Promise<FoundFiles> {
  const files: SourceFile[] = [];
  const paths: string[] = [];
  for (const written of from) {
    const found = isHubPath(written) ? await listHubSource(written, hub) : { path: written, files: await findLocal(written) };
    files.push(...found.files);
    paths.push(found.path);
  }
  const [only] = files;
  return { files, isSingle: from.length === 1 && only?.path === from[0], path: paths.join(', ') };
}

async function findLocal(written: string): Promise<readonly SourceFile[]> {
  const found = await statSource(written);
  if (found !== undefined) return [localFile(written, found)];
  if (!isPattern(written)) throw await missingSource(written);
  const { matches, others } = await matchLocal(written);
  if (matches.length === 0) throw noMatch(written, others);
  const files: SourceFile[] = [];
  for (const path of matches) {
    const stat = await statSource(path);
    if (stat !== undefined) files.push(localFile(path, stat));
  }
  return files;
}

/** Of a path that is no pattern, the path, whether it is there or not. */
export async function listLocalPaths(written: string): Promise<readonly string[]> {
  if (!isPattern(written) || (await statSource(written)) !== undefined) return [written];
  return (await matchLocal(written)).matches;
}

/** `others`: files that could be read and do not match. */
async function matchLocal(written: string): Promise<{ matches: readonly string[]; others: readonly string[] }> {
  const all = (await listFolder(written)).sort(byCodeUnit);
  const isMatch = matchPattern(slashed(written));
  return { matches: all.filter(isMatch), others: all.filter((path) => !isMatch(path) && formatOf(path) !== undefined) };
}

function localFile(path: string, stat: FileStat): SourceFile {
  const format = formatOf(path);
  if (format === undefined) throw unsupportedSuffix(path);
  return { path, format, stat, obtain: () => Promise.resolve(path) };
}

/** Files below the steps that are not a pattern; only as deep as the pattern needs. */
async function listFolder(pattern: string): Promise<string[]> {
  const written = slashed(pattern);
  const folder = fixedFolderOf(written);
  const steps = isDeep(written) ? Number.POSITIVE_INFINITY : written.split('/').length - folder.split('/').length;
  const paths: string[] = [];
  const walk = async (at: string, left: number): Promise<void> => {
    for (const entry of await listEntries(at === '' ? '/' : at)) {
      const path = `${at}/${entry.name}`;
      if (entry.isDirectory() && left > 1) await walk(path, left - 1);
      else if (!entry.isDirectory()) paths.push(path);
    }
  };
  await walk(folder, steps);
  return paths;
}

async function listEntries(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (thrown) {
    throw await fileSystemError(folder, thrown);
  }
}

function slashed(path: string): string {
  return sep === '/' ? path : path.replaceAll(sep, '/');
}
