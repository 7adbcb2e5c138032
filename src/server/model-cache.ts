/**
 * Model files on this machine's disk: `models/` in the cache folder.
 *
 * A file gets its name only when it is whole: written under another name, fsynced, its sha256 checked, then renamed. Its sha256
 * is remembered in a `.sha256` file beside it with size and modification time, so that a start reads two small facts and
 * not gigabytes; when either has changed, the file is hashed again. A file that is not what it should be is fetched anew.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { formatBytes } from '../base/units.ts';
import { cacheFolderOf } from '../host/cache-folder.ts';
import { makeFolder } from '../host/make-folder.ts';

/** What a file must be. `bytes` 0 and `sha256` '' = not known. */
export interface FilePin {
  readonly bytes: number;
  readonly sha256: string;
}

/** `text` for people; `totalBytes` 0 = no measure. */
export interface ModelProgress {
  readonly text: string;
  readonly doneBytes: number;
  readonly totalBytes: number;
}
export type TellProgress = (progress: ModelProgress) => void;

/** The bytes that came are not the bytes that were promised. */
export class DamagedFile extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'DamagedFile';
  }
}

/** Progress is told once per this many bytes: about a hundred times for the default model. */
const TELL_EVERY_BYTES = 2 ** 20;

export function modelFolderOf(env: Readonly<Record<string, string | undefined>>): string {
  return join(cacheFolderOf(env), 'models');
}

/** The sha256 of a file that is there and is what the pin says; undefined where it is not, with the reason told. */
export async function findVerified(path: string, pin: FilePin, tell: TellProgress): Promise<string | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined) return undefined;
  if (pin.bytes > 0 && found.size !== pin.bytes) {
    tell(note(`${path} has ${found.size} bytes and should have ${pin.bytes}: it is fetched anew`));
    return undefined;
  }
  const remembered = await readRemembered(path);
  const isKnown = remembered?.bytes === found.size && remembered.mtimeMs === found.mtimeMs;
  if (!isKnown && pin.sha256 === '') {
    tell(note(`${path} has changed since it was fetched: it is fetched anew`));
    return undefined;
  }
  const sha256 = isKnown ? remembered.sha256 : await hashFile(path, tell);
  if (pin.sha256 !== '' && sha256 !== pin.sha256) {
    tell(note(`${path} has sha256 ${sha256} and should have ${pin.sha256}: it is fetched anew`));
    return undefined;
  }
  if (!isKnown) await remember(path, path, sha256);
  return sha256;
}

/** Stores a stream under `path` and gives its sha256. Throws `DamagedFile` when the pin does not hold; nothing is kept then. */
export async function store(path: string, source: AsyncIterable<Uint8Array>, pin: FilePin, tell: TellProgress): Promise<string> {
  await makeFolder(dirname(path));
  const partial = `${path}.${process.pid}.part`; // two Aeries may fetch the same file at once: each writes its own
  try {
    const { sha256, bytes } = await writeHashed(partial, source, pin, `fetching ${path}`, tell);
    if (pin.bytes > 0 && bytes !== pin.bytes) throw new DamagedFile(`${bytes} bytes came instead of ${pin.bytes}`);
    if (pin.sha256 !== '' && sha256 !== pin.sha256)
      throw new DamagedFile(`what came has sha256 ${sha256} instead of ${pin.sha256}`);
    await rename(partial, path);
    await remember(path, path, sha256);
    return sha256;
  } finally {
    await rm(partial, { force: true });
  }
}

/** The sha256 of a file outside the cache, remembered inside it under `key`: people's folders are not written to. */
export async function hashRemembered(path: string, folder: string, key: string, tell: TellProgress): Promise<string> {
  const { size, mtimeMs } = await stat(path);
  const memory = join(folder, 'elsewhere', key);
  const remembered = await readRemembered(memory);
  if (remembered?.bytes === size && remembered.mtimeMs === mtimeMs) return remembered.sha256;
  const sha256 = await hashFile(path, tell);
  await remember(memory, path, sha256).catch(() => undefined); // a cache that cannot be written costs time, not the run
  return sha256;
}

export interface CachedFile {
  /** Below the folder. */
  readonly name: string;
  readonly bytes: number;
  /** Its sha256 was checked when it came, and size and time are what they were then. */
  readonly isVerified: boolean;
}

/** What lies in the cache, by what is remembered: nothing is hashed. */
export async function listCached(folder: string): Promise<CachedFile[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile() && /\.gguf$/i.test(entry.name));
  return await Promise.all(
    files.map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      const { size, mtimeMs } = await stat(path);
      const remembered = await readRemembered(path);
      const isVerified = remembered?.bytes === size && remembered.mtimeMs === mtimeMs;
      return { name: relative(folder, path), bytes: size, isVerified };
    }),
  );
}

export async function hashFile(path: string, tell: TellProgress): Promise<string> {
  const hash = createHash('sha256');
  tell(note(`checking ${path}`));
  for await (const piece of createReadStream(path, { highWaterMark: 2 ** 20 })) hash.update(piece as Uint8Array);
  return hash.digest('hex');
}

export function note(text: string): ModelProgress {
  return { text, doneBytes: 0, totalBytes: 0 };
}

async function writeHashed(partial: string, source: AsyncIterable<Uint8Array>, pin: FilePin, text: string, tell: TellProgress) {
  const hash = createHash('sha256');
  const file = await open(partial, 'w');
  let bytes = 0;
  let told = 0;
  try {
    for await (const piece of source) {
      bytes += piece.byteLength;
      if (pin.bytes > 0 && bytes > pin.bytes) throw new DamagedFile(`more than the promised ${formatBytes(pin.bytes)} came`);
      hash.update(piece);
      await file.writeFile(piece);
      if (bytes - told < TELL_EVERY_BYTES) continue;
      told = bytes;
      tell({ text, doneBytes: bytes, totalBytes: pin.bytes });
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return { sha256: hash.digest('hex'), bytes };
}

interface Remembered {
  readonly sha256: string;
  readonly bytes: number;
  readonly mtimeMs: number;
}

async function readRemembered(memory: string): Promise<Remembered | undefined> {
  const [sha256, bytes, mtimeMs] = (await readFile(`${memory}.sha256`, 'utf8').catch(() => '')).trim().split(' ');
  if (sha256 === undefined || !/^[0-9a-f]{64}$/.test(sha256)) return undefined;
  return { sha256, bytes: Number(bytes), mtimeMs: Number(mtimeMs) };
}

async function remember(memory: string, path: string, sha256: string): Promise<void> {
  const { size, mtimeMs } = await stat(path);
  await makeFolder(dirname(memory));
  await writeFile(`${memory}.sha256`, `${sha256} ${size} ${mtimeMs}\n`);
}
