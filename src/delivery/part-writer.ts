/**
 * JSON lines into part files of bounded size: `PREFIX-00000.jsonl`, `PREFIX-00001.jsonl`, …
 *
 * Promises: no part is larger than `partBytes` unless one line alone is; a part is never empty; every line ends in a
 * newline; each part is on disk (fdatasync) before `close` returns, with its sha256.
 * On failure: rejects with the system's error; the caller throws the whole folder away.
 */
import { createHash, type Hash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';

export interface PartFile {
  /** Name below the writer's folder. */
  readonly name: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
}

export interface PartWriter {
  append(line: string): Promise<void>;
  /** Ends the last part and names all of them. Also to be called when giving up, to let go of the file. */
  close(): Promise<readonly PartFile[]>;
}

export interface PartWriterOptions {
  /** Must exist. */
  readonly folder: string;
  readonly prefix: string;
  readonly partBytes: number;
}

/** Rows are gathered up to this before one write: a row is a few kilobytes, a system call for each would be most of the work. */
const WRITE_BYTES = 1 << 20;

interface Part {
  readonly name: string;
  readonly file: FileHandle;
  readonly hash: Hash;
  rows: number;
  bytes: number;
}

export function openParts(options: PartWriterOptions): PartWriter {
  const finished: PartFile[] = [];
  let part: Part | undefined;
  let held: Buffer[] = [];
  let heldBytes = 0;

  async function flush(current: Part): Promise<void> {
    if (heldBytes === 0) return;
    const bytes = Buffer.concat(held, heldBytes);
    held = [];
    heldBytes = 0;
    current.hash.update(bytes);
    await current.file.writeFile(bytes); // writes all of it, from where the last write ended
  }

  async function finishPart(): Promise<void> {
    const current = part;
    if (current === undefined) return;
    part = undefined;
    try {
      await flush(current);
      await current.file.datasync();
    } finally {
      await current.file.close();
    }
    finished.push({ name: current.name, rows: current.rows, bytes: current.bytes, sha256: current.hash.digest('hex') });
  }

  async function startPart(): Promise<Part> {
    const name = `${options.prefix}-${String(finished.length).padStart(5, '0')}.jsonl`;
    const file = await open(join(options.folder, name), 'wx');
    return { name, file, hash: createHash('sha256'), rows: 0, bytes: 0 };
  }

  return {
    async append(line) {
      const bytes = Buffer.from(`${line}\n`);
      if (part !== undefined && part.bytes + bytes.length > options.partBytes) await finishPart();
      part ??= await startPart();
      part.rows += 1;
      part.bytes += bytes.length;
      held.push(bytes);
      heldBytes += bytes.length;
      if (heldBytes >= WRITE_BYTES) await flush(part);
    },
    async close() {
      await finishPart();
      return finished;
    },
  };
}
