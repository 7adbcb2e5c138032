/**
 * `hf://datasets/OWNER/NAME[@REVISION]/PATH` → files, fetched into the cache when their turn comes.
 *
 * Promises: a branch or tag is turned into its commit once, and the pin has the commit, so that a resume reads the same
 * bytes, without any network where the cache still has them. A file gets its name in the cache only when it is whole:
 * written under another name, its size (and sha256 where the hub gives one) checked, fsynced, renamed.
 * On failure: `source.missing`, `hub.refused` or `hub.unreachable`, each with what to type; never with a token.
 */
import { createHash } from 'node:crypto';
import { mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { formatBytes } from '../base/units.ts';
import { cacheFolderOf } from '../host/cache-folder.ts';
import { findDatasetCommit, findHubFile, type HubAccess, type HubEntry, HubError, listHubEntries } from '../host/hub-files.ts';
import { type HubPath, parseHubPath } from '../spec/hub-path.ts';
import { formatOf } from './formats.ts';
import { fixedFolderOf, isPattern, matchPattern } from './glob.ts';
import { explainHub, noHubFile } from './hub-errors.ts';
import { unsupportedSuffix } from './source-errors.ts';
import { byCodeUnit, type SourceFile } from './source-file.ts';
import type { SourcePin } from './source-pin.ts';

export interface HubUse {
  /** HF_TOKEN, HF_ENDPOINT, AERIE_CACHE and the proxy variables are looked at. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Of an earlier reading. */
  readonly pin?: SourcePin;
  /** Told before a download. */
  readonly onNote?: (text: string) => void;
  readonly signal?: AbortSignal;
}

export interface HubFiles {
  /** With the commit in it. */
  readonly path: string;
  readonly files: readonly SourceFile[];
}

export async function listHubSource(written: string, use: HubUse): Promise<HubFiles> {
  const place = parseHubPath(written);
  if (place === undefined) throw noHubFile(written, []);
  const pinned = findPinned(place, use.pin);
  const { commit, entries } = pinned ?? (await askHub(written, place, use));
  const base = `hf://datasets/${place.name}@${commit}/`;
  const files = entries.map((entry): SourceFile => {
    const format = formatOf(entry.path);
    if (format === undefined) throw unsupportedSuffix(base + entry.path);
    const wanted = { written, name: place.name, commit, entry };
    return {
      path: base + entry.path,
      format,
      stat: { bytes: entry.bytes, mtimeMs: 0 }, // a commit has no other time
      obtain: (signal) => obtain(wanted, { ...use, ...(signal === undefined ? {} : { signal }) }),
    };
  });
  return { path: base + place.path, files };
}

interface Listed {
  readonly commit: string;
  readonly entries: readonly HubEntry[];
}

async function askHub(written: string, place: HubPath, use: HubUse): Promise<Listed> {
  const access = accessOf(use);
  const repo = `datasets/${place.name}`;
  try {
    const commit = await findDatasetCommit(place.name, place.revision, access);
    const all = await listHubEntries(repo, commit, access, fixedFolderOf(place.path));
    const isWanted = isPattern(place.path) ? matchPattern(place.path) : (path: string) => path === place.path;
    const entries = all.filter(({ path }) => isWanted(path)).sort((a, b) => byCodeUnit(a.path, b.path));
    if (entries.length === 0)
      throw noHubFile(
        written,
        all.map(({ path }) => path).filter((path) => formatOf(path) !== undefined),
      );
    return { commit, entries };
  } catch (thrown) {
    throw explainHub(written, place, thrown, access);
  }
}

/** The files that an earlier reading found for this entry of `from:`; which they are does not change with the branch. */
function findPinned(place: HubPath, pin: SourcePin | undefined): Listed | undefined {
  const isWanted = isPattern(place.path) ? matchPattern(place.path) : (path: string) => path === place.path;
  let commit = '';
  const entries = (pin?.files ?? []).flatMap((part): HubEntry[] => {
    const at = parseHubPath(part.path);
    if (at === undefined || at.name !== place.name || !isWanted(at.path)) return [];
    commit = at.revision;
    return [{ path: at.path, bytes: part.bytes, sha256: '' }];
  });
  return entries.length === 0 ? undefined : { commit, entries };
}

interface WantedFile {
  readonly written: string;
  readonly name: string;
  readonly commit: string;
  readonly entry: HubEntry;
}

async function obtain(wanted: WantedFile, use: HubUse): Promise<string> {
  const { name, commit, entry, written } = wanted;
  const path = join(cacheFolderOf(use.env ?? {}), 'datasets', name.replace('/', '--'), commit, ...entry.path.split('/'));
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() && found.size === entry.bytes) return path;
  use.onNote?.(`fetching ${name}/${entry.path} (${formatBytes(entry.bytes)})`);
  try {
    await fetchFile(wanted, path, use);
  } catch (thrown) {
    use.signal?.throwIfAborted();
    throw explainHub(written, { name, revision: commit, path: entry.path }, thrown, accessOf(use));
  }
  return path;
}

async function fetchFile({ name, commit, entry }: WantedFile, path: string, use: HubUse): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const partial = `${path}.${process.pid}.part`; // two Aeries may fetch the same file at once: each writes its own
  const file = await open(partial, 'w');
  try {
    try {
      const hash = createHash('sha256');
      let bytes = 0;
      for await (const piece of await openPieces(`datasets/${name}`, commit, entry, use)) {
        use.signal?.throwIfAborted();
        bytes += piece.byteLength;
        hash.update(piece);
        await file.writeFile(piece);
      }
      const is = hash.digest('hex');
      if (bytes !== entry.bytes) throw new HubError(`${bytes} bytes came instead of ${entry.bytes}`, 0, undefined);
      if (entry.sha256 !== '' && is !== entry.sha256)
        throw new HubError(`what came has another sha256 than the hub says`, 0, undefined);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(partial, path);
    await syncFolder(dirname(path));
  } finally {
    await rm(partial, { force: true });
  }
}

/** The hub answers a range of an empty file with an error. */
async function openPieces(
  repo: string,
  revision: string,
  entry: HubEntry,
  use: HubUse,
): Promise<AsyncIterable<Uint8Array> | Uint8Array[]> {
  if (entry.bytes === 0) return [];
  const found = await findHubFile({ repo, path: entry.path, revision }, accessOf(use));
  if (found === undefined) throw new HubError(`${entry.path} is gone`, 404, undefined);
  return found.open();
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function accessOf({ env = {}, signal }: HubUse): HubAccess {
  return { env, ...(signal === undefined ? {} : { signal }) };
}
