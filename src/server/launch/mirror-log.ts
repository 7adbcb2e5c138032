/**
 * The log of a launch on another machine, kept here too: when a rented box is gone, what its server wrote is not. While a worker
 * watches the launch, the bytes that it reads are appended to `logs/NAME.log` in the run folder; those of launches before lie in
 * `NAME.log.1`, `.2` …, as they do for a launch of this machine. `NAME.mirror.json` says of which launch `NAME.log` is.
 *
 * Promises: the mirror is a beginning of the log there, byte for byte, whenever this process is killed; nothing is in it twice, and
 * nothing is left out. What is here already is compared while it is read again: a tail of zeros (a power cut) is cut, other
 * bytes mean that the log there is another one, and the mirror is put aside as `NAME.log.N.cut-1` …; so is one that has
 * more than the log there. A log that is cut and grows beyond its old length between two looks is seen at the next start.
 * Where the log there has the path that the mirror would have, there is none: over ssh to this machine it would be the same file.
 * On failure: said once; the run goes on, and what is missing is read again from the machine once there is room.
 */
import { open, rename, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { isOutOfReach, systemCodeOf } from '../../base/errors.ts';
import type { Machine } from '../../machine/machine.ts';
import { replaceFile } from '../../shard/durable-file.ts';
import { ensureFolder } from '../../shard/durable-folder.ts';
import { freeName, mirrorPath, notePath, readNote, sizeOf } from './mirror-place.ts';

export interface LogMirrorOptions {
  readonly machine: Pick<Machine, 'name' | 'readFile'>;
  /** Of the log there. */
  readonly logPath: string;
  /** The run folder. */
  readonly folder: string;
  readonly server: string;
  /** Its number. */
  readonly launch: number;
  /** Told once, when the mirror cannot be kept. */
  readonly onTrouble: (sentence: string) => void;
}

/** What a reader of the log there has found: bytes from an offset, and how long the log is. */
export interface LogRead {
  readonly offset: number;
  readonly bytes: Uint8Array;
  readonly size: number;
}

/** As the follower of the log reads. */
const CHUNK_BYTES = 4 * 2 ** 20;
/** Read again in one look at most, after a time without room: the look waits for it. */
const MOST_BYTES_A_LOOK = 64 * 2 ** 20;

export class LogMirror {
  readonly #options: LogMirrorOptions;
  readonly #path: string;
  /** Of the mirror; undefined: to be looked at. */
  #size: number | undefined;
  /** So much of it is known to be what is there. */
  #verified = 0;
  #hasSaid = false;

  constructor(options: LogMirrorOptions) {
    this.#options = options;
    this.#path = mirrorPath(options.folder, options.server);
  }

  /** Never throws. Call it with every read, also with one that found nothing new. */
  async take(read: LogRead): Promise<void> {
    if (this.#options.logPath === this.#path) return;
    try {
      await this.#keep(read, this.#size ?? (await this.#open()));
    } catch (thrown) {
      this.#size = undefined; // part of it may have been written
      // A machine that is out of reach is told by whoever watches it.
      if (!isOutOfReach(thrown)) this.#say(thrown);
    }
  }

  /** The mirror of another launch moves aside; killed between the steps, the next one finds the same. */
  async #open(): Promise<number> {
    const { folder, server, launch } = this.#options;
    await ensureFolder(join(folder, 'logs'));
    const noted = await readNote(folder, server);
    if (noted !== launch) {
      if ((await sizeOf(this.#path)) !== undefined) {
        // Where the name is taken a launch of this machine came between, and it is the one that lies here.
        const isFree = noted > 0 && (await sizeOf(`${this.#path}.${noted}`)) === undefined;
        await rename(this.#path, await freeName(`${this.#path}.${isFree ? noted : launch - 1}`));
      }
      await replaceFile(notePath(folder, server), `${JSON.stringify({ launch })}\n`);
    }
    const size = (await sizeOf(this.#path)) ?? 0;
    this.#size = size;
    this.#verified = Math.min(this.#verified, size);
    return size;
  }

  async #keep({ offset, bytes, size }: LogRead, before: number): Promise<void> {
    if (size < before) await this.#cutOrPutAside(size, before);
    if (!(await this.#verifyUpTo(offset))) return;
    await this.#compare(offset, bytes);
    // Bytes are kept only where all before them are, and are what is there.
    if (!(await this.#fetchUpTo(bytes.length > 0 ? offset : Math.min(offset, size)))) return;
    const here = this.#size ?? 0;
    if (here < offset + bytes.length) await this.#append(bytes.subarray(here - offset));
  }

  /** What a look that failed has not compared is read again. False: not all yet. */
  async #verifyUpTo(offset: number): Promise<boolean> {
    const { machine, logPath } = this.#options;
    for (let fetched = 0; ; ) {
      const end = Math.min(offset, this.#size ?? 0);
      if (this.#verified >= end) return true;
      if (fetched >= MOST_BYTES_A_LOOK) return false;
      const found = await machine.readFile(logPath, this.#verified, Math.min(CHUNK_BYTES, end - this.#verified));
      if (found === undefined || found.bytes.length === 0) return false;
      await this.#compare(this.#verified, found.bytes);
      fetched += found.bytes.length;
    }
  }

  /** What was read and is here already. */
  async #compare(offset: number, bytes: Uint8Array): Promise<void> {
    const here = this.#size ?? 0;
    const end = Math.min(here, offset + bytes.length);
    if (offset > this.#verified || end <= this.#verified) return;
    const mine = await readRange(this.#path, offset, end);
    const at = firstDifference(mine, bytes.subarray(0, end - offset));
    this.#verified = offset + at;
    if (this.#verified === end) return;
    await this.#cutOrPutAside(this.#verified, here);
  }

  /** From `at` on the mirror is not what is there. */
  async #cutOrPutAside(at: number, end: number): Promise<void> {
    if (await isZeros(this.#path, at, end)) {
      await truncate(this.#path, at);
      this.#size = at;
      this.#verified = Math.min(this.#verified, at);
      return;
    }
    await rename(this.#path, await freeName(`${this.#path}.${this.#options.launch}.cut-1`));
    this.#size = 0;
    this.#verified = 0;
  }

  /** From the machine: what was read when there was no room for it, or belongs to a log that began anew. False: not all yet. */
  async #fetchUpTo(end: number): Promise<boolean> {
    const { machine, logPath } = this.#options;
    for (let fetched = 0; (this.#size ?? 0) < end; ) {
      const from = this.#size ?? 0;
      if (fetched >= MOST_BYTES_A_LOOK) return false;
      const found = await machine.readFile(logPath, from, Math.min(CHUNK_BYTES, end - from));
      if (found === undefined || found.bytes.length === 0) return false;
      await this.#append(found.bytes);
      fetched += found.bytes.length;
    }
    return true;
  }

  async #append(bytes: Uint8Array): Promise<void> {
    const handle = await open(this.#path, 'a');
    try {
      await handle.writeFile(bytes);
    } finally {
      await handle.close();
    }
    const wasVerified = this.#verified === this.#size;
    this.#size = (this.#size ?? 0) + bytes.length;
    if (wasVerified) this.#verified = this.#size;
  }

  #say(thrown: unknown): void {
    if (this.#hasSaid) return;
    this.#hasSaid = true;
    const { machine, server, onTrouble } = this.#options;
    const why = systemCodeOf(thrown) || (thrown instanceof Error ? thrown.message : String(thrown));
    onTrouble(
      `${server}: its log on ${machine.name} cannot be copied to ${this.#path} (${why}); the run goes on, and should that machine go, its log goes with it`,
    );
  }
}

async function readRange(path: string, from: number, end: number): Promise<Uint8Array> {
  const handle = await open(path, 'r');
  try {
    const bytes = new Uint8Array(end - from);
    let filled = 0;
    while (filled < bytes.length) {
      const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, from + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return bytes.subarray(0, filled);
  } finally {
    await handle.close();
  }
}

/** How many bytes agree from the beginning on. */
function firstDifference(mine: Uint8Array, theirs: Uint8Array): number {
  const length = Math.min(mine.length, theirs.length);
  if (Buffer.compare(mine.subarray(0, length), theirs.subarray(0, length)) === 0) return length;
  let at = 0;
  while (mine[at] === theirs[at]) at += 1;
  return at;
}

async function isZeros(path: string, from: number, end: number): Promise<boolean> {
  for (let at = from; at < end; at += CHUNK_BYTES) {
    const bytes = await readRange(path, at, Math.min(end, at + CHUNK_BYTES));
    if (bytes.some((byte) => byte !== 0)) return false;
  }
  return true;
}
