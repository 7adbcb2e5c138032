/**
 * A source file's bytes as stored, in order, hashed as they pass; and the text that they hold, decompressed where it is
 * gzip. Memory is bounded by the chunk size on both sides of the decompressor.
 *
 * On failure: `source.missing` or `source.unreadable`; on abort the signal's own reason. The file is closed in every case.
 */
import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { AerieError, systemCodeOf } from '../base/errors.ts';
import { damagedGzip } from './damaged-source.ts';
import { fileSystemError } from './source-errors.ts';

/** Large enough that reading is not felt (16 reads a batch), small beside a batch of 4 MiB. */
const CHUNK_BYTES = 256 * 1024;

export interface StoredBytes {
  readonly path: string;
  readonly signal: AbortSignal | undefined;
  /** All bytes from the start; to be taken once. */
  chunks(): AsyncGenerator<Uint8Array, void, undefined>;
  /** sha256 of the bytes that `chunks` has given out (or is about to), and how many they are. */
  hashed(): { readonly sha256: string; readonly hashedBytes: number };
}

/** `most` bounds how many bytes are read. The file is opened at the first chunk and closed after the last. */
export function readStoredBytes(path: string, signal: AbortSignal | undefined, most = Number.POSITIVE_INFINITY): StoredBytes {
  const hash = createHash('sha256');
  let hashedBytes = 0;

  async function* chunks(): AsyncGenerator<Uint8Array, void, undefined> {
    const handle = await openFile(path);
    try {
      while (hashedBytes < most) {
        signal?.throwIfAborted();
        const chunk = await readChunk(handle, path, Math.min(CHUNK_BYTES, most - hashedBytes));
        if (chunk.length === 0) return;
        hash.update(chunk);
        hashedBytes += chunk.length;
        yield chunk;
      }
    } finally {
      await handle.close();
    }
  }

  return { path, signal, chunks, hashed: () => ({ sha256: hash.copy().digest('hex'), hashedBytes }) };
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'r');
  } catch (thrown) {
    throw await fileSystemError(path, thrown);
  }
}

/** A fresh buffer each time: lines are views into it. */
async function readChunk(handle: FileHandle, path: string, most: number): Promise<Uint8Array> {
  try {
    const buffer = Buffer.allocUnsafeSlow(most);
    const { bytesRead } = await handle.read(buffer, 0, most);
    return buffer.subarray(0, bytesRead);
  } catch (thrown) {
    throw await fileSystemError(path, thrown);
  }
}

/** Several members one after the other are one text, as gzip has it. Bytes after the last member are refused, never dropped. */
export async function* gunzipChunks(stored: StoredBytes, bytes: number): AsyncGenerator<Uint8Array, void, undefined> {
  const gunzip = createGunzip({ chunkSize: CHUNK_BYTES });
  // The loop below sees every error of the pipeline, because it destroys the last stream with it.
  pipeline(Readable.from(stored.chunks(), { highWaterMark: 1 }), gunzip, () => undefined);
  try {
    for await (const chunk of gunzip) yield chunk as Uint8Array;
  } catch (thrown) {
    stored.signal?.throwIfAborted();
    throw explainGunzip(stored, bytes, thrown);
  }
  const readBytes = stored.hashed().hashedBytes;
  if (gunzip.bytesWritten < Math.max(bytes, readBytes)) {
    const because = `The last member ends at byte ${gunzip.bytesWritten}; what follows is not gzip.`;
    throw damagedGzip({ path: stored.path, readBytes, bytes, because });
  }
}

/** zlib's codes begin with Z_; everything else (a disk error) already says what it is. */
function explainGunzip(stored: StoredBytes, bytes: number, thrown: unknown): unknown {
  if (thrown instanceof AerieError || !systemCodeOf(thrown).startsWith('Z_')) return thrown;
  const because = `zlib says: ${thrown instanceof Error ? thrown.message : String(thrown)} (${systemCodeOf(thrown)})`;
  return damagedGzip({ path: stored.path, readBytes: stored.hashed().hashedBytes, bytes, because }, thrown);
}
