/** Bytes of a file that another process may be writing. undefined: it is not there, or not to be read. */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

export async function readSlice(
  path: string,
  offset: number,
  most: number,
): Promise<{ readonly bytes: Uint8Array; readonly size: number } | undefined> {
  // Never waits for a writer, should a pipe have its name.
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    const found = await handle.stat();
    if (!found.isFile()) return undefined;
    const bytes = new Uint8Array(Math.max(0, Math.min(most, found.size - offset)));
    let filled = 0;
    while (filled < bytes.length) {
      const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, offset + filled);
      if (bytesRead === 0) break; // it was cut meanwhile
      filled += bytesRead;
    }
    return { bytes: bytes.subarray(0, filled), size: found.size };
  } finally {
    await handle.close();
  }
}
