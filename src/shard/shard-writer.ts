/**
 * Appends records to the shards of one partition: `records/B1/00000.jsonl`, `00001.jsonl` and so on.
 *
 * States: open (append, rollback) → sealed (`seal`) → the next number, open and empty.
 * Order of a commit: `append` (durable when it resolves) → ledger transaction → event. Order of a seal: `seal` → ledger.
 * A process killed between `seal` and the ledger opens the same shard again, finds it full, and seals it again.
 * On failure: as `append-file.ts`; the numbers and the offsets stay right for a later append.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { AppendFile, type AppendPoint, type LinePlace } from './append-file.ts';
import { explainDiskError } from './disk-error.ts';
import { shardPath } from './shard-path.ts';

/** Large enough for sequential reading, small enough that hashing one at its seal takes about a second. */
const SEAL_BYTES = 256 * 1024 * 1024;
/** Hashing is on the loop: 256 KiB hold it for less than a millisecond. */
const HASH_CHUNK_BYTES = 256 * 1024;

/** Moments at which a test may end the process, in the order in which they come. */
export type ShardPoint = AppendPoint | 'before-seal' | 'after-seal-hash';

export interface ShardWriterOptions {
  /** The run folder. */
  readonly folder: string;
  readonly partition: string;
  /** The open shard of the ledger, or the number after the last sealed one. */
  readonly number: number;
  /** Of that shard, by the ledger; 0 for a new one. */
  readonly committedBytes: number;
  readonly sealBytes?: number;
  /** Called at each point; a test's ends the process there. */
  readonly at?: (point: ShardPoint) => void;
}

export interface RecordPlace extends LinePlace {
  /** Of the line with its newline. */
  readonly sha256: string;
}

export interface SealedShard {
  readonly number: number;
  readonly bytes: number;
  /** Of the whole file, as read back. */
  readonly sha256: string;
}

export interface ShardWriter {
  readonly partition: string;
  /** The shard that the next append goes to. */
  readonly number: number;
  readonly path: string;
  readonly durableBytes: number;
  /** What opening cut away after the committed bytes: the torn tail of a killed process. */
  readonly cutBytes: number;
  /** It has reached its size: seal it after the ledger has committed what it holds. */
  readonly isFull: boolean;
  /** Lines end in a newline. Durable when it resolves; one call at a time. */
  append(lines: readonly Buffer[]): Promise<readonly RecordPlace[]>;
  /** Cuts back to `bytes` what the ledger refused; not after its `disk.failed` (see `AppendFile.rollback`). */
  rollback(bytes: number): Promise<void>;
  /** Hashes the whole file; the next append begins the next shard. Tell the ledger before that append. */
  seal(): Promise<SealedShard>;
  close(): Promise<void>;
}

export async function openShardWriter(options: ShardWriterOptions): Promise<ShardWriter> {
  const path = shardPath(options.folder, options.partition, options.number);
  return new Writer(options, await AppendFile.open(path, options.committedBytes, options.at));
}

class Writer implements ShardWriter {
  readonly partition: string;
  readonly cutBytes: number;
  readonly #options: ShardWriterOptions;
  #number: number;
  #file: AppendFile;

  constructor(options: ShardWriterOptions, file: AppendFile) {
    this.partition = options.partition;
    this.cutBytes = file.cutBytes;
    this.#options = options;
    this.#number = options.number;
    this.#file = file;
  }

  get number(): number {
    return this.#number;
  }

  get path(): string {
    return this.#file.path;
  }

  get durableBytes(): number {
    return this.#file.durableBytes;
  }

  get isFull(): boolean {
    return this.durableBytes >= (this.#options.sealBytes ?? SEAL_BYTES);
  }

  async append(lines: readonly Buffer[]): Promise<readonly RecordPlace[]> {
    const hashes = lines.map((line) => createHash('sha256').update(line).digest('hex'));
    const places = await this.#file.append(lines);
    return places.map((place, index) => ({ ...place, sha256: hashes[index] ?? '' }));
  }

  async rollback(bytes: number): Promise<void> {
    await this.#file.rollback(bytes);
  }

  async seal(): Promise<SealedShard> {
    this.#options.at?.('before-seal');
    const sealed = { number: this.#number, bytes: this.durableBytes, sha256: await hashFile(this.path) };
    this.#options.at?.('after-seal-hash');
    const next = shardPath(this.#options.folder, this.partition, sealed.number + 1);
    const file = await AppendFile.open(next, 0, this.#options.at);
    await this.#file.close();
    this.#file = file;
    this.#number = sealed.number + 1;
    return sealed;
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: HASH_CHUNK_BYTES })) hash.update(chunk as Buffer);
  } catch (thrown) {
    throw explainDiskError(thrown, path);
  }
  return hash.digest('hex');
}
