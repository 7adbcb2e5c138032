/**
 * Rows into Parquet part files of bounded size: `PREFIX-00000.parquet`, …
 *
 * Promises: one schema for every file, nothing nullable, ids as int32; a row group and a part hold no more than their bound in
 * values before compression (unless one row alone is larger), so memory is one row group; a part is never empty.
 * On failure: rejects with the system's error; the caller throws the whole folder away.
 */
import { ByteWriter, ParquetWriter, type SchemaElement } from 'hyparquet-writer';
import { type OpenPart, openPart, type PartFile, type PartWriter, type PartWriterOptions, partName } from './part-file.ts';

/** Readers take whole row groups into memory, several at a time; compressed this is 1 to 3 MB, large enough for a disk. */
const ROW_GROUP_BYTES = 8 * 2 ** 20;

/** A column: its name, and its schema with the elements below it. */
export interface Column {
  readonly name: string;
  readonly elements: readonly SchemaElement[];
}

interface Part {
  readonly file: OpenPart;
  readonly bytes: ByteWriter;
  readonly parquet: ParquetWriter;
  rows: number;
  values: number;
}

export function openParquetParts(options: PartWriterOptions & { readonly columns: readonly Column[] }): PartWriter {
  const { columns } = options;
  const root: SchemaElement = { name: 'root', num_children: columns.length };
  const schema = [root, ...columns.flatMap(({ elements }) => elements)];
  const finished: PartFile[] = [];
  let part: Part | undefined;
  let held: Readonly<Record<string, unknown>>[] = [];
  let heldBytes = 0;

  async function startPart(): Promise<Part> {
    const file = await openPart(options.folder, partName(options.prefix, finished.length, 'parquet'));
    const bytes = new ByteWriter();
    return { file, bytes, parquet: new ParquetWriter({ writer: bytes, schema, createdBy: 'aerie' }), rows: 0, values: 0 };
  }

  async function writeGroup(current: Part): Promise<void> {
    if (held.length === 0) return;
    const rows = held;
    held = [];
    heldBytes = 0;
    const columnData = columns.map(({ name }) => ({ name, data: rows.map((row) => row[name]) }));
    await current.parquet.write({ columnData, rowGroupSize: rows.length });
    await drain(current);
  }

  async function finishPart(): Promise<void> {
    const current = part;
    if (current === undefined) return;
    part = undefined;
    try {
      await writeGroup(current);
      await current.parquet.finish();
      await drain(current);
    } finally {
      finished.push(await current.file.end(current.rows));
    }
  }

  return {
    async append(row) {
      const size = sizeOf(row);
      if (part !== undefined && part.values + size > options.partBytes) await finishPart();
      part ??= await startPart();
      if (heldBytes + size > ROW_GROUP_BYTES) await writeGroup(part);
      part.rows += 1;
      part.values += size;
      held.push(row as Readonly<Record<string, unknown>>);
      heldBytes += size;
    },
    async close() {
      await finishPart();
      return finished;
    },
  };
}

/** What the writer has made so far goes to the file, and its buffer begins anew. */
async function drain({ file, bytes }: Part): Promise<void> {
  await file.write(bytes.getBytes());
  bytes.index = 0;
}

/** Bytes of a value before compression; for text the most it can be, three a UTF-16 unit. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return 4 + value.length * 3;
  if (Array.isArray(value)) {
    return typeof value[0] === 'number' ? 4 + value.length * 4 : value.reduce((sum: number, entry) => sum + sizeOf(entry), 4);
  }
  if (typeof value === 'object' && value !== null)
    return Object.values(value).reduce((sum: number, entry) => sum + sizeOf(entry), 0);
  return 4;
}
