/**
 * Reads records back: byte ranges in the order of the files, in large sequential reads, each verified against its
 * sha256 and its newline. What is wrong with a range is a value (`aerie check` counts it); what is wrong with a file
 * that cannot be opened or read at all is an error.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { systemCodeOf } from '../base/errors.ts';
import { formatCount } from '../base/units.ts';
import { explainDiskError } from './disk-error.ts';
import { shardPath } from './shard-path.ts';

/** One read serves hundreds of records, and a reader takes no more memory than this and the largest record. */
const BLOCK_BYTES = 4 * 1024 * 1024;

/** The ledger's `LiveRecord` is one. */
export interface RecordRange {
  readonly partition: string;
  readonly shard: number;
  readonly offset: number;
  readonly bytes: number;
  readonly sha256: string;
}

/** `line` has its newline and is good until the next one is asked for. */
export type ReadLine<R> =
  | { readonly ok: true; readonly range: R; readonly line: Buffer }
  | { readonly ok: false; readonly range: R; readonly because: string };

/** Ranges are best given in the order of the files, as `liveRecords` gives them. */
export async function* readRecords<R extends RecordRange>(
  runFolder: string,
  ranges: Iterable<R>,
): AsyncGenerator<ReadLine<R>, void, undefined> {
  const blocks = new Blocks();
  try {
    for (const range of ranges) {
      const path = shardPath(runFolder, range.partition, range.shard);
      const line = await blocks.read(path, range);
      const because = explainLine(line, range);
      yield because === undefined ? { ok: true, range, line } : { ok: false, range, because };
    }
  } finally {
    await blocks.close();
  }
}

/** Whether the committed bytes of a shard are there; undefined is yes. A longer file is fine: its tail is not committed. */
export async function explainShardLength(
  runFolder: string,
  shard: { readonly partition: string; readonly number: number; readonly committedBytes: number },
): Promise<string | undefined> {
  const path = shardPath(runFolder, shard.partition, shard.number);
  try {
    const { size } = await stat(path);
    if (size >= shard.committedBytes) return undefined;
    return `${path} has ${formatCount(size)} bytes and the ledger has committed ${formatCount(shard.committedBytes)}`;
  } catch (thrown) {
    if (systemCodeOf(thrown) !== 'ENOENT') throw explainDiskError(thrown, path);
    return `${path} is not there and the ledger has committed ${formatCount(shard.committedBytes)} bytes of it`;
  }
}

function explainLine(line: Buffer, range: RecordRange): string | undefined {
  const where = `bytes ${range.offset} to ${range.offset + range.bytes} of shard ${range.shard}`;
  if (line.length < range.bytes) return `${where}: the file ends ${range.bytes - line.length} bytes early`;
  if (line.indexOf(0x0a) !== range.bytes - 1) return `${where} are not one line`;
  return createHash('sha256').update(line).digest('hex') === range.sha256
    ? undefined
    : `${where} are not those that were committed (sha256)`;
}

/** The open shard and the block of it that was read last. */
class Blocks {
  #path = '';
  #handle: FileHandle | undefined;
  #start = 0;
  #block: Buffer = Buffer.alloc(0);

  /** Shorter than asked for where the file ends, and empty where there is none. */
  async read(path: string, { offset, bytes }: RecordRange): Promise<Buffer> {
    try {
      if (path !== this.#path) await this.#openShard(path);
      const inside = offset >= this.#start && offset + bytes <= this.#start + this.#block.length;
      if (!inside) await this.#load(offset, Math.max(bytes, BLOCK_BYTES));
      return this.#block.subarray(offset - this.#start, offset - this.#start + bytes);
    } catch (thrown) {
      if (systemCodeOf(thrown) === 'ENOENT') return Buffer.alloc(0);
      throw explainDiskError(thrown, path);
    }
  }

  async close(): Promise<void> {
    await this.#handle?.close();
    this.#handle = undefined;
    this.#path = '';
  }

  async #openShard(path: string): Promise<void> {
    await this.close();
    this.#block = Buffer.alloc(0);
    this.#handle = await open(path, 'r');
    this.#path = path;
  }

  async #load(offset: number, bytes: number): Promise<void> {
    const block = Buffer.allocUnsafe(bytes);
    let length = 0;
    while (length < bytes) {
      const read = await this.#handle?.read(block, length, bytes - length, offset + length);
      if (read === undefined || read.bytesRead === 0) break;
      length += read.bytesRead;
    }
    this.#start = offset;
    this.#block = block.subarray(0, length);
  }
}
