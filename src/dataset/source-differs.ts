/**
 * Whether a source is still what it was when it was read. Same size and time: nothing is read. Else the bytes that were
 * hashed then are hashed again; bytes nobody had read may change freely.
 */
import { stat } from 'node:fs/promises';
import { AerieError, systemCodeOf } from '../base/errors.ts';
import { fileSystemError, notAFile } from './source-errors.ts';
import type { FilePin } from './source-pin.ts';
import { readStoredBytes } from './stored-bytes.ts';

export type SourceDifference =
  | { readonly what: 'missing'; readonly path: string; readonly pinnedBytes: number }
  | { readonly what: 'shrunk'; readonly path: string; readonly pinnedBytes: number; readonly bytes: number }
  /** A file that the source did not have then, which a pattern matches now. */
  | { readonly what: 'appeared'; readonly path: string; readonly pinnedBytes: number; readonly bytes: number }
  /** All that was read is still there, and more has come behind it. */
  | { readonly what: 'grown'; readonly path: string; readonly pinnedBytes: number; readonly bytes: number }
  | {
      readonly what: 'changed';
      readonly path: string;
      readonly pinnedBytes: number;
      readonly bytes: number;
      /** The first so many bytes are not what they were. */
      readonly hashedBytes: number;
      readonly pinnedSha256: string;
      readonly sha256: string;
    };

export interface FileStat {
  readonly bytes: number;
  /** Whole milliseconds: a ledger may keep it as an integer. */
  readonly mtimeMs: number;
}

/** undefined = not there. A folder or a pipe is `source.unreadable`. */
export async function statSource(path: string): Promise<FileStat | undefined> {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw notAFile(path, found.isDirectory());
    return { bytes: found.size, mtimeMs: Math.trunc(found.mtimeMs) };
  } catch (thrown) {
    const code = systemCodeOf(thrown);
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw thrown instanceof AerieError ? thrown : await fileSystemError(path, thrown);
  }
}

export async function sourceDiffers(pin: FilePin, path: string, signal?: AbortSignal): Promise<SourceDifference | undefined> {
  const now = await statSource(path);
  const pinnedBytes = pin.bytes;
  if (now === undefined) return { what: 'missing', path, pinnedBytes };
  const { bytes } = now;
  if (bytes === pin.bytes && now.mtimeMs === Math.trunc(pin.mtimeMs)) return undefined;
  if (bytes < pin.bytes) return { what: 'shrunk', path, pinnedBytes, bytes };
  const stored = readStoredBytes(path, signal, pin.hashedBytes);
  for await (const _ of stored.chunks()) {
    // Hashed as they pass.
  }
  const { sha256, hashedBytes } = stored.hashed();
  // Before anything was read the pin has no hash, and nothing can differ.
  if (pin.hashedBytes > 0 && (sha256 !== pin.sha256 || hashedBytes !== pin.hashedBytes)) {
    return { what: 'changed', path, pinnedBytes, bytes, hashedBytes: pin.hashedBytes, pinnedSha256: pin.sha256, sha256 };
  }
  return bytes === pin.bytes ? undefined : { what: 'grown', path, pinnedBytes, bytes };
}
