/** Every row of a Parquet export, read by a library that did not write it. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';

export interface ReadParquet {
  readonly rows: readonly Readonly<Record<string, unknown>>[];
  /** Column names and types, one text for each file: all must be the same. */
  readonly schemas: readonly string[];
  readonly rowGroups: readonly number[];
}

export async function readParquetFolder(folder: string): Promise<ReadParquet> {
  const rows: Record<string, unknown>[] = [];
  const schemas: string[] = [];
  const rowGroups: number[] = [];
  for (const name of (await readdir(folder)).sort()) {
    const bytes = await readFile(join(folder, name));
    const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) as ArrayBuffer;
    const metadata = parquetMetadata(file);
    schemas.push(metadata.schema.map((element) => [element.name, element.type, element.repetition_type].join()).join(' '));
    rowGroups.push(metadata.row_groups.length);
    rows.push(...(await parquetReadObjects({ file })));
  }
  return { rows, schemas, rowGroups };
}
