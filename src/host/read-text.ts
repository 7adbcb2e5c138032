/**
 * The text of a file that is small when it is what it should be. A pipe or a device has no end and may never begin: it is
 * told by a code of this file's own, like a file that is larger than the caller will hold. Never waits for a writer.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';

export type UnreadableCode = 'NOT_A_FILE' | 'TOO_LARGE';

/** Throws what the system says, or an Error with an `UnreadableCode` as its code. */
export async function readText(path: string, mostBytes: number): Promise<string> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const found = await handle.stat();
    if (found.isDirectory()) throw coded('EISDIR', 'it is a folder');
    if (!found.isFile()) throw coded('NOT_A_FILE', 'it is a pipe or a device');
    if (found.size > mostBytes) throw coded('TOO_LARGE', `it has ${found.size} bytes, more than ${mostBytes}`);
    return await handle.readFile('utf8');
  } finally {
    await handle.close();
  }
}

function coded(code: UnreadableCode | 'EISDIR', message: string): Error {
  return Object.assign(new Error(message), { code });
}
