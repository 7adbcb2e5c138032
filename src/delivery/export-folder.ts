/**
 * The folder of an export: whole or absent, never half.
 *
 * absent → partial (`NAME.aerie-partial` beside it is being filled) → whole (renamed to NAME).
 * A whole export is replaced only when the new one is complete: old → `NAME.aerie-old`, new → NAME, old removed; a crash
 * between the two renames leaves NAME absent. What a crash left behind is removed by the next export.
 *
 * Counts, where they are asked for, are a second folder `NAME.counts`, put in place last: a crash leaves none, never stale ones.
 * `NAME.manifest.txt` beside the folder says that Aerie made it. It lies beside because speculators reads every .json and
 * .jsonl below a folder, and it is text so that no loader takes it for data.
 * On failure: a NAME that Aerie did not make is `export.target`; a disk that does not write is `disk.*`. In both cases
 * nothing that was there has changed.
 */
import { lstat, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AerieError, diskCodeOf, systemCodeOf } from '../base/errors.ts';
import { syncFolder } from '../shard/durable-folder.ts';

/** First line of every manifest; how Aerie knows its own. */
export const MANIFEST_MARK = 'aerie-export 1';

export interface ExportFolder {
  /** Where to write. */
  readonly partial: string;
  /** Where to write counts; made by who writes them. */
  readonly countsPartial: string;
  readonly countsFolder: string;
  readonly manifestPath: string;
  /** Puts the filled folder and its manifest in place. */
  complete(manifest: string): Promise<void>;
  /** Removes what was written; never rejects. */
  abandon(): Promise<void>;
}

export async function openExportFolder(folder: string): Promise<ExportFolder> {
  const manifestPath = `${folder}.manifest.txt`;
  const partial = `${folder}.aerie-partial`;
  const old = `${folder}.aerie-old`;
  const countsFolder = `${folder}.counts`;
  const countsPartial = `${countsFolder}.aerie-partial`;
  await refuseForeign(folder, manifestPath);
  await refuseForeign(countsFolder, manifestPath);
  for (const left of [partial, old, countsPartial]) await rm(left, { recursive: true, force: true });
  await mkdir(partial, { recursive: true });
  return {
    partial,
    countsPartial,
    countsFolder,
    manifestPath,
    async complete(manifest) {
      const manifestPartial = `${manifestPath}.aerie-partial`;
      await writeFile(manifestPartial, manifest, { flush: true });
      await syncFoldersBelow(partial);
      await rm(countsFolder, { recursive: true, force: true }); // they belong to the old export
      const hadOld = await exists(folder);
      if (hadOld) await rename(folder, old);
      await rename(manifestPartial, manifestPath); // before the folder: a folder without it would look like someone else's
      await rename(partial, folder);
      if (await exists(countsPartial)) {
        await syncFolder(countsPartial);
        await rename(countsPartial, countsFolder);
      }
      await syncFolder(dirname(folder));
      if (hadOld) await rm(old, { recursive: true, force: true });
    },
    async abandon() {
      await rm(partial, { recursive: true, force: true }).catch(() => undefined);
      await rm(countsPartial, { recursive: true, force: true }).catch(() => undefined);
      await rm(`${manifestPath}.aerie-partial`, { force: true }).catch(() => undefined);
    },
  };
}

async function refuseForeign(folder: string, manifestPath: string): Promise<void> {
  const stats = await lstat(folder).catch(ifAbsent);
  if (stats === undefined) return;
  if (!stats.isDirectory()) throw targetError(folder, 'it is not a folder');
  const names = await readdir(folder);
  if (names.length === 0) return;
  const manifest = await readFile(manifestPath, 'utf8').catch(ifAbsent);
  if (manifest?.split('\n', 1)[0] === MANIFEST_MARK) return;
  throw targetError(
    folder,
    `it holds ${names.length} entries, and ${basename(manifestPath)} beside it does not say that Aerie made them`,
  );
}

function targetError(folder: string, because: string): AerieError {
  return new AerieError('export.target', `${folder} cannot be the export folder. Nothing was written.`, {
    because,
    remedy: `Name another folder, or move this one away:\nmv ${JSON.stringify(folder)} ${JSON.stringify(`${folder}.kept`)}`,
    facts: { folder },
  });
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(ifAbsent)) !== undefined;
}

function ifAbsent(thrown: unknown): undefined {
  if (systemCodeOf(thrown) === 'ENOENT') return undefined;
  throw thrown;
}

async function syncFoldersBelow(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await syncFoldersBelow(join(folder, entry.name));
  }
  await syncFolder(folder);
}

/** What the system said while writing an export → what the operator can do. Anything else is passed through. */
export function explainDiskError(thrown: unknown, folder: string): unknown {
  const systemCode = systemCodeOf(thrown);
  const code = diskCodeOf(systemCode);
  if (thrown instanceof AerieError || code === undefined) return thrown;
  return new AerieError(
    code,
    `The export to ${folder} was not written (${systemCode}). The records are as they were.`,
    {
      because: thrown instanceof Error ? thrown.message : String(thrown),
      remedy:
        code === 'disk.full'
          ? 'Free space there, or name a folder on another disk, and export again.'
          : 'Name a folder that can be written, and export again.',
      facts: { folder, systemCode },
    },
    thrown,
  );
}
