/**
 * A file that only grows, by lines that are on disk before anyone is told of them. Under `shard-writer.ts` and
 * `line-file.ts`; the ledger says how many of its bytes count.
 *
 * Promises: opening cuts away what lies after the committed bytes (the torn tail of a killed process) and never touches
 * the bytes before. After `append` returned, its bytes survive a power cut.
 * On failure: the file is cut back to what was durable, so that a later append is right, and the error is `disk.full`,
 * `disk.read-only` or `disk.failed`. If even the cut fails, every later append is refused with that error; the cut is
 * then made by the next opening.
 */
import { constants, type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { bug } from '../base/errors.ts';
import { committedBytesMissing, explainDiskError } from './disk-error.ts';
import { ensureFolder, syncFolder } from './durable-folder.ts';

/** Moments at which a test may end the process; in the order in which they come. */
export type AppendPoint = 'after-append' | 'after-sync';

/** Where a line lies, its newline included. */
export interface LinePlace {
  readonly offset: number;
  readonly bytes: number;
}

export class AppendFile {
  readonly path: string;
  /** Bytes that opening cut away after the committed ones. */
  readonly cutBytes: number;
  readonly #handle: FileHandle;
  readonly #at: (point: AppendPoint) => void;
  #durableBytes: number;
  #busy = false;
  #failure: Error | undefined;

  private constructor(opened: {
    path: string;
    handle: FileHandle;
    committedBytes: number;
    cutBytes: number;
    at: (point: AppendPoint) => void;
  }) {
    this.path = opened.path;
    this.cutBytes = opened.cutBytes;
    this.#handle = opened.handle;
    this.#durableBytes = opened.committedBytes;
    this.#at = opened.at;
  }

  static async open(path: string, committedBytes: number, at: (point: AppendPoint) => void = () => {}): Promise<AppendFile> {
    let handle: FileHandle | undefined;
    try {
      await ensureFolder(dirname(path));
      handle = await open(path, constants.O_RDWR | constants.O_CREAT);
      const { size } = await handle.stat();
      if (size < committedBytes) throw committedBytesMissing(path, committedBytes, size);
      if (size > committedBytes) await handle.truncate(committedBytes);
      if (size === 0) await syncFolder(dirname(path)); // it may be new: its name must be as durable as its bytes
      return new AppendFile({ path, handle, committedBytes, cutBytes: size - committedBytes, at });
    } catch (thrown) {
      await handle?.close();
      throw explainDiskError(thrown, path);
    }
  }

  get durableBytes(): number {
    return this.#durableBytes;
  }

  /** One writev and one fdatasync, however many lines. One call at a time. */
  async append(lines: readonly Buffer[]): Promise<readonly LinePlace[]> {
    return await this.#alone(async () => {
      const places: LinePlace[] = [];
      let end = this.#durableBytes;
      for (const line of lines) {
        if (line.at(-1) !== 0x0a) throw bug(`A line without its newline was appended to ${this.path}.`, { path: this.path });
        places.push({ offset: end, bytes: line.length });
        end += line.length;
      }
      if (lines.length === 0) return places;
      try {
        await this.#write(lines, end - this.#durableBytes);
        this.#at('after-append');
        await this.#handle.datasync();
        this.#at('after-sync');
      } catch (thrown) {
        await this.#cut(this.#durableBytes);
        throw thrown;
      }
      this.#durableBytes = end;
      return places;
    });
  }

  /**
   * Takes back what was appended after `bytes`, because the ledger has refused it. Not after a ledger that answered
   * `disk.failed`: its transaction may be on disk after all, and then these bytes must stay; the next opening decides.
   */
  async rollback(bytes: number): Promise<void> {
    await this.#alone(async () => {
      if (bytes > this.#durableBytes)
        throw bug(`${this.path} cannot be cut to ${bytes} of ${this.#durableBytes} bytes.`, { bytes });
      await this.#cut(bytes);
      this.#durableBytes = bytes;
    });
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  /** A short write is the first half of a full disk: the rest is tried, and the system then says why. */
  async #write(lines: readonly Buffer[], total: number): Promise<void> {
    let { bytesWritten: written } = await this.#handle.writev(lines, this.#durableBytes);
    if (written === total) return;
    const all = Buffer.concat(lines);
    while (written < total) {
      const { bytesWritten } = await this.#handle.write(all, written, total - written, this.#durableBytes + written);
      written += bytesWritten;
    }
  }

  async #cut(bytes: number): Promise<void> {
    try {
      await this.#handle.truncate(bytes);
    } catch (thrown) {
      this.#failure = explainDiskError(thrown, this.path);
    }
  }

  async #alone<T>(work: () => Promise<T>): Promise<T> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#busy) throw bug(`${this.path} was appended to while an append was under way.`, { path: this.path });
    this.#busy = true;
    try {
      return await work();
    } catch (thrown) {
      throw explainDiskError(thrown, this.path);
    } finally {
      this.#busy = false;
    }
  }
}
