/**
 * The log of a launch, wherever it can be read: on its machine, or what was kept of it here (`mirror-log.ts`) where that machine
 * is out of reach, is another one by now, or has lost the log. A mirror is a beginning of the log, so an offset means the same
 * in both, and a reader that is followed goes over from one to the other without a gap.
 */
import { dirname } from 'node:path';
import { AerieError, isOutOfReach } from '../../base/errors.ts';
import { quoteShell } from '../../base/quote-shell.ts';
import { readSlice } from '../../machine/local/read-slice.ts';
import type { Machine } from '../../machine/machine.ts';
import type { LaunchRecord } from '../../server/launch/launch-book.ts';
import { findMirror } from '../../server/launch/mirror-place.ts';
import type { RunSpec, ServerSpec } from '../../spec/run.ts';
import { launchPaths } from '../servers/launch-paths.ts';
import type { KeptCopy } from './partial-log.ts';

export interface LogWanted {
  readonly run: RunSpec;
  readonly server: ServerSpec;
  readonly machine: Machine;
  /** 0 = the newest, and there was none. */
  readonly launch: number;
  /** Launches so far, and the one that lives. */
  readonly launches: number;
  readonly current: LaunchRecord | undefined;
  /** Told where another copy than the machine's own is read. */
  readonly onNote: (text: string) => void;
}

export interface OpenedLog {
  /** Where it is read now. */
  readonly path: string;
  /** What is read instead of the log itself, from now on; undefined: the log itself. */
  readonly kept: KeptCopy | undefined;
  read(offset: number, most: number): ReturnType<Machine['readFile']>;
}

/** Throws `log.unreadable` where there is none, and what the machine says where nothing was kept of it. */
export async function openLaunchLog(wanted: LogWanted): Promise<OpenedLog> {
  const { machine } = wanted;
  // Known from the book: a machine elsewhere need not be asked, nor be there. Here a log may outlive its book.
  if (wanted.launch === 0 && !machine.isHere) throw neverLaunched(wanted);
  let read: Machine['readFile'] = (path, offset, most) => machine.readFile(path, offset, most);
  let path = '';
  let kept: KeptCopy | undefined;
  const goOver = async (mirror: string, why: AerieError) => {
    const size = (await readSlice(mirror, 0, 0))?.size ?? 0;
    wanted.onNote(`${why.message.replace(/\.$/, '')}; this is what was kept of it here: ${mirror}, ${size} bytes`);
    path = mirror;
    kept = { path, size, why };
    read = readSlice;
  };
  try {
    path = await pathThere(wanted);
    if ((await machine.readFile(path, 0, 1)) === undefined) {
      const mirror = await mirrorOf(wanted);
      const none = wanted.launch === 0 ? neverLaunched(wanted) : noLog(path, wanted);
      if (mirror === undefined) throw none;
      await goOver(mirror, none);
    }
  } catch (thrown) {
    if (!isOutOfReach(thrown)) throw thrown;
    const mirror = await mirrorOf(wanted);
    if (mirror === undefined) throw thrown;
    await goOver(mirror, thrown);
  }
  return {
    get path() {
      return path;
    },
    get kept() {
      return kept;
    },
    async read(offset, most) {
      try {
        return await read(path, offset, most);
      } catch (thrown) {
        if (!isOutOfReach(thrown)) throw thrown;
        const mirror = await mirrorOf(wanted);
        if (mirror === undefined) throw thrown;
        await goOver(mirror, thrown);
        return await read(path, offset, most);
      }
    },
  };
}

async function pathThere({ run, server, machine, launch, launches, current }: LogWanted): Promise<string> {
  const logPath = current?.logPath ?? (await launchPaths(run, server, machine)).logPath;
  return launch === launches ? logPath : `${logPath}.${launch}`;
}

async function mirrorOf({ run, server, machine, launch }: LogWanted): Promise<string | undefined> {
  return machine.isHere ? undefined : await findMirror(run.serverFolder, server.name, launch);
}

function neverLaunched({ run, server }: LogWanted): AerieError {
  return new AerieError('log.unreadable', `${server.name} was not launched yet, so it has no log.`, {
    remedy: `Launch it:  aerie server start ${quoteShell(run.file)}`,
  });
}

function noLog(path: string, { machine, launch, launches }: LogWanted): AerieError {
  return new AerieError(
    'log.unreadable',
    `There is no log of launch ${launch} at ${path}${machine.isHere ? '' : ` of ${machine.name}`}.`,
    {
      because: `Launches so far: ${launches}.`,
      remedy: `Look into ${dirname(path)}${machine.isHere ? '' : ` of ${machine.name}`}, or name another with --launch N.`,
    },
  );
}
