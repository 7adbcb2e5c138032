/** Reads single lines of a file by their place: the prompts of leases, which come in the order of the file but not one by one. */
import { type FileHandle, open } from 'node:fs/promises';
import { AerieError } from '../base/errors.ts';
import { explainDiskError } from './disk-error.ts';

export interface LineReader {
  /** The text of the bytes, or `ledger.damaged` when the file has not that many. */
  read(offset: number, bytes: number): Promise<string>;
  close(): Promise<void>;
}

/** Some hundred prompts: they are asked for in the order of the file, so that nearly all of them are read already. */
const WINDOW_BYTES = 64 * 1024;

/** A stretch of the file as it was read: it may have grown since. */
interface Window {
  readonly offset: number;
  readonly bytes: Buffer;
}

/**
 * Opens at the first read: a partition that has nothing to do needs no file. `committedBytes`: what the ledger has of it now. What lies
 * behind may be the torn tail of a killed worker, and is cut and written anew meanwhile: it is not kept.
 */
export function openLineReader(path: string, committedBytes: () => number): LineReader {
  let opening: Promise<FileHandle> | undefined;
  let window: Promise<Window> | undefined;

  async function readWindow(offset: number, bytes: number): Promise<Window> {
    opening ??= open(path, 'r');
    const committed = Math.max(0, committedBytes() - offset);
    const buffer = Buffer.allocUnsafe(Math.max(Math.min(WINDOW_BYTES, committed), bytes));
    const { bytesRead } = await (await opening).read(buffer, 0, buffer.length, offset);
    return { offset, bytes: buffer.subarray(0, bytesRead) };
  }

  return {
    async read(offset, bytes) {
      try {
        // Whoever waited for a window looks at the one that another reader has begun meanwhile.
        let tried: Promise<Window> | undefined;
        while (window !== undefined && window !== tried) {
          tried = window;
          const text = textIn(await tried, offset, bytes);
          if (text !== undefined) return text;
        }
        window = readWindow(offset, bytes);
        const read = textIn(await window, offset, bytes);
        if (read !== undefined) return read;
      } catch (thrown) {
        throw explainDiskError(thrown, path);
      }
      throw new AerieError('ledger.damaged', `${path} ends before byte ${offset + bytes}, where the ledger has a prompt.`, {
        remedy: 'Put the file back as it was. Records already written are not touched.',
      });
    },
    async close() {
      await (await opening?.catch(() => undefined))?.close();
    },
  };
}

/** undefined: not all of it was read. */
function textIn(window: Window, offset: number, bytes: number): string | undefined {
  const from = offset - window.offset;
  return from >= 0 && from + bytes <= window.bytes.length ? window.bytes.toString('utf8', from, from + bytes) : undefined;
}
