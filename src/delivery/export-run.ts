/**
 * A run's records → files that a trainer reads as they are.
 *
 *   FOLDER/tokens/B1.tokens-00000.jsonl                 token rows, both targets
 *   FOLDER/conversations/B1.conversations-00000.jsonl   conversation rows, SpecForge only
 *   FOLDER.manifest.txt                                 beside the folder: what is in it, what was left out
 *
 * Why subfolders: speculators loads a folder with everything below it as one table, so two row shapes in one folder end in
 * an error for all of it. SpecForge reads one file at a time: token parts by `data.prompts_path`, conversation parts by
 * `data.train_data_path`. With one shape per subfolder either loader can be pointed at `tokens/`, and for speculators the
 * export folder itself will do as well. For the same reason nothing but data lies in the folder.
 *
 * Promises: the export is whole or absent; parts are bounded; the same records give the same bytes; row ids are unique
 * (they begin with the partition where several are exported); memory is bounded by one part of buffers, not by the run.
 * On failure: the folder is as it was before.
 */
import { mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { openExportFolder, explainDiskError } from './export-folder.ts';
import { type ExportPartition, type ExportResult, type ExportTarget, renderManifest } from './export-manifest.ts';
import { type ExportSource, writePartition } from './write-partition.ts';

/**
 * SpecForge holds a whole file as Python lists, about 47 bytes of memory a token, and reads 0.3 million tokens/s (both
 * measured). A token takes 10 to 15 bytes in the file, so 64 MiB is about 5 million tokens: a quarter of a gigabyte there,
 * read in a quarter of a minute.
 */
export const DEFAULT_PART_BYTES = 64 * 2 ** 20;

export interface ExportRequest {
  readonly sources: readonly ExportSource[];
  readonly target: ExportTarget;
  readonly folder: string;
  readonly partBytes?: number;
  /** From the model; 0 or absent = unknown. Rows with ids outside are left out. */
  readonly vocabularySize?: number;
  readonly signal?: AbortSignal;
}

export async function exportRun(request: ExportRequest): Promise<ExportResult> {
  const place = await openExportFolder(request.folder).catch((thrown: unknown) => {
    throw explainDiskError(thrown, request.folder);
  });
  try {
    const tokens = join(place.partial, 'tokens');
    const conversations = request.target === 'specforge' ? join(place.partial, 'conversations') : undefined;
    for (const subfolder of [tokens, conversations]) if (subfolder !== undefined) await mkdir(subfolder);
    const partitions: ExportPartition[] = [];
    for (const source of request.sources) {
      partitions.push(
        await writePartition({
          source,
          folders: conversations === undefined ? { tokens } : { tokens, conversations },
          partBytes: request.partBytes ?? DEFAULT_PART_BYTES,
          idPrefix: request.sources.length > 1 ? `${source.partition}/` : '',
          vocabularySize: request.vocabularySize ?? 0,
          ...(request.signal === undefined ? {} : { signal: request.signal }),
        }),
      );
    }
    const result: ExportResult = {
      target: request.target,
      folder: request.folder,
      manifest: place.manifestPath,
      partitions,
    };
    await place.complete(renderManifest(result, basename(request.folder)));
    return result;
  } catch (thrown) {
    await place.abandon();
    throw explainDiskError(thrown, request.folder);
  }
}
