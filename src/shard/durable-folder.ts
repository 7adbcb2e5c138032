/** Folders whose names survive a power cut: a new name is on disk only when the folder that holds it has been fsynced. */
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { makeFolder } from '../host/make-folder.ts';

/** Creates what is missing and fsyncs every folder that got a new entry. */
export async function ensureFolder(path: string): Promise<void> {
  for (const made of (await makeFolder(path)).reverse()) await syncFolder(dirname(made));
}

export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
