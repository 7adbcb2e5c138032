/**
 * A run's records → files that a trainer reads as they are.
 *
 *   FOLDER/tokens/B1.tokens-00000.jsonl                 token rows: ids and loss mask
 *   FOLDER/conversations/B1.conversations-00000.jsonl   conversation rows (`messages/` for trainers that call them so)
 *   FOLDER/train/…  FOLDER/held-out/…                   the same, where prompts are held out
 *   FOLDER.counts/                                      beside the folder: token counts, draft vocabulary
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
import { type CountsRequest, refuseCounts, writeCounts } from './export-counts.ts';
import { type ExportFolder, explainDiskError, openExportFolder } from './export-folder.ts';
import { type ExportPartition, type ExportResult, renderManifest } from './export-manifest.ts';
import { type ExportTarget, TARGETS } from './export-targets.ts';
import { type ExportSource, type RecordKey, writePartition } from './write-partition.ts';

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
  /** SpecForge's mask extension; see `token-rows.ts`. */
  readonly extendMask?: boolean;
  /** Share of the prompts for `held-out/`; 0 or absent = none, and no such folders. */
  readonly heldOut?: number;
  /** The finding for which a record is to be left out, if any. */
  readonly withheldBecause?: (record: RecordKey) => string | undefined;
  readonly counts?: CountsRequest;
  readonly signal?: AbortSignal;
}

export async function exportRun(request: ExportRequest): Promise<ExportResult> {
  if (request.counts !== undefined) refuseCounts(request.counts);
  const place = await openExportFolder(request.folder).catch((thrown: unknown) => {
    throw explainDiskError(thrown, request.folder);
  });
  try {
    const result = await fill(request, place);
    await place.complete(renderManifest(result, basename(request.folder)));
    return result;
  } catch (thrown) {
    await place.abandon();
    throw explainDiskError(thrown, request.folder);
  }
}

async function fill(request: ExportRequest, place: ExportFolder): Promise<ExportResult> {
  await makeSubfolders(request, place.partial);
  const counted = request.counts === undefined ? undefined : new Map<number, number>();
  const partitions: ExportPartition[] = [];
  for (const source of request.sources) {
    partitions.push(
      await writePartition({
        source,
        target: request.target,
        folder: place.partial,
        partBytes: request.partBytes ?? DEFAULT_PART_BYTES,
        idPrefix: request.sources.length > 1 ? `${source.partition}/` : '',
        vocabularySize: request.vocabularySize ?? 0,
        extendMask: request.extendMask ?? false,
        heldOut: request.heldOut ?? 0,
        ...(request.withheldBecause === undefined ? {} : { withheldBecause: request.withheldBecause }),
        ...(counted === undefined ? {} : { counts: counted }),
        ...(request.signal === undefined ? {} : { signal: request.signal }),
      }),
    );
  }
  const into = { into: place.countsPartial, folder: place.countsFolder };
  const counts =
    counted === undefined || request.counts === undefined ? undefined : await writeCounts(counted, request.counts, into);
  return {
    target: request.target,
    folder: request.folder,
    manifest: place.manifestPath,
    heldOut: request.heldOut ?? 0,
    extendMask: request.extendMask ?? false,
    ...(counts === undefined ? {} : { counts }),
    partitions,
  };
}

/** There even where they stay empty: a trainer that is pointed at one says that it is empty, not that the path is wrong. */
async function makeSubfolders({ target, heldOut = 0 }: ExportRequest, folder: string): Promise<void> {
  const { hasTokens, conversations } = TARGETS[target];
  for (const split of heldOut > 0 ? ['train', 'held-out'] : ['']) {
    if (hasTokens) await mkdir(join(folder, split, 'tokens'), { recursive: true });
    if (conversations !== undefined) await mkdir(join(folder, split, conversations.folder), { recursive: true });
  }
}
