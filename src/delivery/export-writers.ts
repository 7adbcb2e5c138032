/**
 * The open part files of one partition: a row is given with the place it belongs to, and files begin when they have a row.
 *
 *   [train | held-out]/tokens/B1.tokens-00000.jsonl
 *   [train | held-out]/messages/B1.messages-00000.jsonl        and B1.tool-messages-00000.jsonl: see `hasTools`
 */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExportedFile } from './export-manifest.ts';
import { type ExportTarget, TARGETS, type TargetLayout } from './export-targets.ts';
import { openJsonParts } from './json-parts.ts';
import { openParquetParts } from './parquet-parts.ts';
import { MESSAGE_COLUMNS, TOKEN_COLUMNS } from './parquet-rows.ts';
import type { PartWriter } from './part-file.ts';

/** '' = the export is not split. */
export type Split = '' | 'train' | 'held-out';

export interface RowPlace {
  readonly split: Split;
  readonly shape: 'tokens' | 'conversations';
  /** In a file of their own where the row has a column for them: a column that only some rows have is no column to Arrow. */
  readonly hasTools: boolean;
}

export interface ExportWriters {
  append(place: RowPlace, row: object): Promise<void>;
  /** Ends every file, also where one of them fails, and names them in the order of their paths. */
  close(): Promise<readonly ExportedFile[]>;
  /** Removes what was written. After `close`. */
  discard(): Promise<void>;
}

export interface WritersOptions {
  readonly folder: string;
  readonly target: ExportTarget;
  readonly partition: string;
  readonly partBytes: number;
}

export function openWriters(options: WritersOptions): ExportWriters {
  const layout: TargetLayout = TARGETS[options.target];
  const writers = new Map<string, PartWriter>();
  const files: ExportedFile[] = [];

  async function writerAt(place: RowPlace): Promise<PartWriter> {
    const kind = place.shape === 'tokens' ? 'tokens' : (layout.conversations?.folder ?? 'conversations');
    const below = join(place.split, kind);
    const key = place.hasTools && layout.container === 'jsonl' ? `${below}/tool-${kind}` : `${below}/${kind}`;
    const open = writers.get(key);
    if (open !== undefined) return open;
    const folder = join(options.folder, below);
    await mkdir(folder, { recursive: true });
    const prefix = `${options.partition}.${key.slice(below.length + 1)}`;
    const columns = place.shape === 'tokens' ? TOKEN_COLUMNS : MESSAGE_COLUMNS;
    const parts = { folder, prefix, partBytes: options.partBytes };
    const writer = layout.container === 'parquet' ? openParquetParts({ ...parts, columns }) : openJsonParts(parts);
    writers.set(key, writer);
    return writer;
  }

  return {
    async append(place, row) {
      await (await writerAt(place)).append(row);
    },
    async close() {
      const ended = await Promise.allSettled(
        [...writers].map(async ([key, writer]) => {
          const below = key.slice(0, key.lastIndexOf('/'));
          for (const { name, rows, bytes, sha256 } of await writer.close())
            files.push({ path: `${below}/${name}`, rows, bytes, sha256 });
        }),
      );
      writers.clear();
      const failed = ended.find((result) => result.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      return files.sort((a, b) => (a.path < b.path ? -1 : 1));
    },
    async discard() {
      for (const { path } of files) await rm(join(options.folder, path), { force: true });
    },
  };
}
