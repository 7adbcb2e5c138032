/** Where the mirrors of a server's logs lie in a run folder, and of which launch each is. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCodeOf } from '../../base/errors.ts';

/** The log of a server in the run folder: its own where it runs here, else what was read of it. */
export function mirrorPath(folder: string, server: string): string {
  return join(folder, 'logs', `${server}.log`);
}

/** Where the mirror of a launch lies; undefined where there is none. */
export async function findMirror(folder: string, server: string, launch: number): Promise<string | undefined> {
  const path = mirrorPath(folder, server);
  const found = (await readNote(folder, server)) === launch ? path : `${path}.${launch}`;
  return (await sizeOf(found)) === undefined ? undefined : found;
}

export function notePath(folder: string, server: string): string {
  return join(folder, 'logs', `${server}.mirror.json`);
}

/** 0 = there was no mirror, or nobody knows whose it is. */
export async function readNote(folder: string, server: string): Promise<number> {
  try {
    const { launch } = JSON.parse(await readFile(notePath(folder, server), 'utf8')) as { readonly launch?: unknown };
    return typeof launch === 'number' && Number.isSafeInteger(launch) && launch > 0 ? launch : 0;
  } catch {
    return 0;
  }
}

export async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (thrown) {
    if (systemCodeOf(thrown) === 'ENOENT') return undefined;
    throw thrown;
  }
}

/** The name, or the next one that nothing has: what is kept is never written over. `x` → `x.cut-1` → `x.cut-2`. */
export async function freeName(path: string): Promise<string> {
  if ((await sizeOf(path)) === undefined) return path;
  const base = path.replace(/\.cut-\d+$/, '');
  for (let n = 1; ; n++) if ((await sizeOf(`${base}.cut-${n}`)) === undefined) return `${base}.cut-${n}`;
}
