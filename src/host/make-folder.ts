/**
 * A folder and what is missing above it. Node's own `recursive` never returns where a folder that is there says ENOENT to
 * every new name, as /proc does, and says ENOENT where a file system is read-only; here each error is the system's own.
 */
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemCodeOf } from '../base/errors.ts';

/** Gives those that it made, the highest first. */
export async function makeFolder(path: string): Promise<string[]> {
  try {
    await mkdir(path);
    return [path];
  } catch (thrown) {
    const code = systemCodeOf(thrown);
    if (code === 'EEXIST' && (await isFolder(path))) return [];
    if (code !== 'ENOENT' || (await isFolder(dirname(path)))) throw thrown;
    return [...(await makeFolder(dirname(path))), ...(await makeFolder(path))];
  }
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}
