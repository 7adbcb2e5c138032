/** A whole file, replaced at once: whoever looks sees the old text or the new one, also after a power cut. */
import { open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { syncFolder } from './durable-folder.ts';

export async function replaceFile(path: string, text: string): Promise<void> {
  const handle = await open(`${path}.new`, 'w');
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${path}.new`, path);
  await syncFolder(dirname(path));
}
