/** Folders whose names survive a power cut: a new name is on disk only when the folder that holds it has been fsynced. */
import { mkdir, open } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Creates what is missing and fsyncs every folder that got a new entry. */
export async function ensureFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  const last = dirname(first);
  for (let folder = dirname(path); folder.length >= last.length; folder = dirname(folder)) {
    await syncFolder(folder);
    if (folder === last) return;
  }
}

export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
