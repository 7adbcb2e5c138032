/** One part of an export while it is written: bytes go to the file and into its sha256. On disk (fdatasync) once `end` returns. */
import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { join } from 'node:path';

export interface PartFile {
  /** Name below the writer's folder. */
  readonly name: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
}

/** Takes rows of one shape and spreads them over part files. */
export interface PartWriter {
  append(row: object): Promise<void>;
  /** Ends the last part and names all of them. Also to be called when giving up, to let go of the file. */
  close(): Promise<readonly PartFile[]>;
}

export interface PartWriterOptions {
  /** Must exist. */
  readonly folder: string;
  readonly prefix: string;
  readonly partBytes: number;
}

export interface OpenPart {
  write(bytes: Uint8Array): Promise<void>;
  /** Closes the file, whatever happens. */
  end(rows: number): Promise<PartFile>;
}

export async function openPart(folder: string, name: string): Promise<OpenPart> {
  const file = await open(join(folder, name), 'wx');
  const hash = createHash('sha256');
  let written = 0;
  return {
    async write(bytes) {
      hash.update(bytes);
      written += bytes.length;
      await file.writeFile(bytes); // writes all of it, from where the last write ended
    },
    async end(rows) {
      try {
        await file.datasync();
      } finally {
        await file.close();
      }
      return { name, rows, bytes: written, sha256: hash.digest('hex') };
    },
  };
}

export function partName(prefix: string, nth: number, extension: string): string {
  return `${prefix}-${String(nth).padStart(5, '0')}.${extension}`;
}
