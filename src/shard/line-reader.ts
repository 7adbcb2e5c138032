/** Reads single lines of a file by their place: the prompts of leases, which come in the order of the file but not one by one. */
import { type FileHandle, open } from 'node:fs/promises';
import { AerieError } from '../base/errors.ts';
import { explainDiskError } from './disk-error.ts';

export interface LineReader {
  /** The text of the bytes, or `ledger.damaged` when the file has not that many. */
  read(offset: number, bytes: number): Promise<string>;
  close(): Promise<void>;
}

/** Opens at the first read: a partition that has nothing to do needs no file. */
export function openLineReader(path: string): LineReader {
  let opening: Promise<FileHandle> | undefined;
  return {
    async read(offset, bytes) {
      const buffer = Buffer.allocUnsafe(bytes);
      try {
        opening ??= open(path, 'r');
        const { bytesRead } = await (await opening).read(buffer, 0, bytes, offset);
        if (bytesRead === bytes) return buffer.toString('utf8');
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
