/**
 * What is known of one launched server across lives of Aerie: `servers/NAME.json` in the run folder. Written before a
 * process is started (the marker finds what was started by an Aerie that died at once) and after everything that changes it.
 * Promise: whoever reads it sees a whole book, the old one or the new one, also after a power cut.
 */
import { access, open } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AerieError, diskCodeOf, systemCodeOf } from '../../base/errors.ts';
import type { Redact } from '../../base/redact.ts';
import { readText } from '../../host/read-text.ts';
import type { Containment } from '../../machine/contained/inside.ts';
import type { GpuReading, ProcessIdentity } from '../../machine/machine.ts';
import { replaceFile } from '../../shard/durable-file.ts';
import { ensureFolder, syncFolder } from '../../shard/durable-folder.ts';
import type { KeptChanges } from '../recovery/kept-changes.ts';
import type { Flags, LaunchTry } from '../recovery/recovery.ts';
import type { LoadSeen } from './changed-launch.ts';

/** One launch, from the decision to start it to its end. */
export interface LaunchRecord {
  /** Counted from 1 over the life of the run. */
  readonly n: number;
  readonly marker: string;
  /** Absent: Aerie died between the decision and the start, or the start failed. */
  readonly identity?: ProcessIdentity;
  readonly flags: Flags;
  /** Names and values; secrets as `$NAME`. */
  readonly env: Readonly<Record<string, string>>;
  /** As a person would type it, without the environment. */
  readonly line: string;
  readonly port: number;
  /** How what its command started is asked for; absent: the engine is the command's own process. */
  readonly contained?: Containment;
  readonly logPath: string;
  readonly statusPath: string;
  readonly startedAt: number;
  /** Epoch ms when it became ready; absent: it has not been. */
  readonly readyAt?: number;
  /** Requests it had answered when last looked at. */
  readonly answered: number;
}

/** What a launch was when it had come up, and how it worked. */
export interface SeenLaunch {
  readonly n: number;
  readonly flags: Flags;
  readonly env: Readonly<Record<string, string>>;
  readonly kvType: { readonly type: string; readonly bits?: number };
  /** 0 = unknown. */
  readonly poolTokens: number;
  readonly freeAfterGraphsGiB?: number;
  /** Means of its time at work, from its log; absent: it has not worked, or is at it. */
  readonly load?: LoadSeen;
}

export interface ServerBook {
  readonly v: 1;
  readonly launches: number;
  /** The launch that lives, or was never seen to end. */
  readonly current?: LaunchRecord;
  /** A launch that is over, until all of it is seen to be gone: an Aerie that died between the two left it. */
  readonly leftover?: LaunchRecord;
  /** The GPUs before the first launch; empty or absent = not known. */
  readonly baseline?: readonly GpuReading[];
  /** How earlier launches ended, oldest first. */
  readonly tries: readonly LaunchTry[];
  /** The last try has not been answered yet: what follows it is still to be decided. */
  readonly isPending: boolean;
  readonly kept: KeptChanges;
  /** The last verified launches that differ, oldest first. */
  readonly seen?: readonly SeenLaunch[];
  /** Rules that came later and have been looked at for this server, each in its own words. */
  readonly rules?: readonly string[];
}

/** Enough for the tries of a bad night; what is older says nothing about the next launch. */
const MOST_TRIES = 20;
/** A book has some kilobytes a try; more is not ours. */
const MOST_BYTES = 32 * 1024 * 1024;

export interface BookShelf {
  read(): Promise<ServerBook>;
  write(book: ServerBook): Promise<void>;
  /** For a remark beside others who write: nobody writes between the reading and the writing. undefined: nothing is to be written. */
  change(edit: (book: ServerBook) => ServerBook | undefined): Promise<void>;
  /** A person has ended the launch. Where the disk takes no book any more, a mark says so; false: nothing does. `isGone`: see `afterStop`. */
  noteStopped(book: ServerBook, isGone: boolean): Promise<boolean>;
}

/** The end of a launch and the news that it is ready come from two sides of one process. By the path of the book. */
const lastWrite = new Map<string, Promise<void>>();

async function inTurn(path: string, work: () => Promise<void>): Promise<void> {
  const mine = (lastWrite.get(path) ?? Promise.resolve()).then(work);
  lastWrite.set(
    path,
    mine.catch(() => undefined),
  );
  await mine;
}

/** `redact`: a verdict quotes the log, and a log may show a secret. */
export function openBook(folder: string, server: string, empty: KeptChanges, redact: Redact = (text) => text): BookShelf {
  const path = join(folder, 'servers', `${server}.json`);
  const read = async (): Promise<ServerBook> => {
    const text = await readText(path, MOST_BYTES).catch((thrown: unknown) => {
      if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw thrown;
    });
    if (text === undefined) return { v: 1, launches: 0, tries: [], isPending: false, kept: empty };
    const book = parseBook(text, path);
    return (await isMarked(folder, book)) ? afterStop(book, true) : book;
  };
  const write = async (book: ServerBook): Promise<void> => {
    await ensureFolder(join(folder, 'servers'));
    const tries = book.tries.slice(-MOST_TRIES).map(withoutSamples);
    await replaceFile(path, `${redact(JSON.stringify({ ...book, tries }, undefined, 1))}\n`);
  };
  return {
    read,
    write: (book) => inTurn(path, () => write(book)),
    change: (edit) =>
      inTurn(path, async () => {
        const edited = edit(await read());
        if (edited !== undefined) await write(edited);
      }),
    async noteStopped(book, isGone) {
      try {
        await inTurn(path, () => write(afterStop(book, isGone)));
        return true;
      } catch (thrown) {
        if (diskCodeOf(systemCodeOf(thrown)) === undefined) throw thrown;
        return await mark(folder, book);
      }
    },
  };
}

/**
 * A launch of which not all is gone stays in the book: the next stop or start tries again, and does not take it for a stranger. What is
 * to be decided after a death stays to be decided where only its leftover was ended.
 */
export function afterStop({ current, leftover, ...book }: ServerBook, isGone: boolean): ServerBook {
  const left = isGone ? undefined : (current ?? leftover);
  return { ...book, isPending: current === undefined && book.isPending, ...(left === undefined ? {} : { leftover: left }) };
}

/**
 * An empty file: a disk without space has room for a name as a rule. Named by the marker, which no two launches share, so that one that
 * is left behind is in nobody's way.
 */
function markPathOf(folder: string, { marker }: LaunchRecord): string {
  return join(folder, 'servers', `${marker}.stopped`);
}

async function mark(folder: string, { current }: ServerBook): Promise<boolean> {
  if (current === undefined) return true;
  const path = markPathOf(folder, current);
  try {
    await (await open(path, 'w')).close();
    await syncFolder(dirname(path));
    return true;
  } catch {
    return false;
  }
}

async function isMarked(folder: string, { current }: ServerBook): Promise<boolean> {
  if (current === undefined) return false;
  return access(markPathOf(folder, current)).then(
    () => true,
    () => false,
  );
}

/** For who ends a launch where the disk takes nothing more: read, and nothing is written but that it was stopped. */
export function withoutWriting(shelf: BookShelf): BookShelf {
  return { ...shelf, write: () => Promise.resolve(), change: () => Promise.resolve() };
}

/** The readings of a night at work belong to the log. */
function withoutSamples(one: LaunchTry): LaunchTry {
  return { ...one, verdict: { ...one.verdict, facts: { ...one.verdict.facts, samples: [] } } };
}

function parseBook(text: string, path: string): ServerBook {
  try {
    const book = JSON.parse(text) as ServerBook;
    if (book.v === 1 && Array.isArray(book.tries) && typeof book.launches === 'number') return book;
  } catch {
    // said below
  }
  throw new AerieError('ledger.damaged', `${path} is not what Aerie wrote there.`, {
    because: 'It says which server was launched, and by that a server is found again and stopped.',
    remedy: `Look whether a server still runs (nvidia-smi), then remove the file:  rm ${path}\nRecords and the ledger are not touched by this.`,
  });
}
