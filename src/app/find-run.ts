/** RUN on a command line is a run file or a run folder. Finds both from either. */
import { stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { AerieError, systemCodeOf } from '../base/errors.ts';
import { readText } from '../host/read-text.ts';
import { readRunFile } from '../spec/read-run-file.ts';
import type { RunSpec } from '../spec/run.ts';

/** A run file has some KB, and what is longer than 256 KiB is refused; this only keeps a data set named by mistake from being read whole. */
const MOST_BYTES = 4 * 2 ** 20;

export interface FoundRun {
  readonly run: RunSpec;
  /** What was typed, for messages that say how to resume. */
  readonly argument: string;
}

/** Reads the run that `argument` names. Throws `run-file.missing`, `run-file.wrong` or `run.absent`. */
export async function findRun(argument: string): Promise<FoundRun> {
  const path = resolve(argument);
  const found = await stat(path).catch((thrown: unknown) => thrown);
  if (found instanceof Error) throw missing(argument, path, systemCodeOf(found));
  if (!(found as { isDirectory(): boolean }).isDirectory()) return { run: await readRun(path), argument };

  const text = await readText(join(path, 'run.yaml'), MOST_BYTES).catch(() => undefined);
  if (text === undefined) throw noRunFolder(argument);
  if (!(await isRunFolder(path))) throw besideRunFile(argument);
  // The folder lies in runs/NAME beside the run file; paths in it are relative to that place.
  const beside = dirname(dirname(path));
  const spec = readRunFile(text, join(beside, 'run.yaml'));
  const live = await fileItCameFrom(path);
  return { run: live ?? { ...spec, folder: path, file: join(path, 'run.yaml') }, argument };
}

async function readRun(path: string): Promise<RunSpec> {
  const text = await readText(path, MOST_BYTES).catch((thrown: unknown) => {
    throw missing(path, path, systemCodeOf(thrown));
  });
  return readRunFile(text, path);
}

/** The run file named in run.resolved.json, where it still is and still means this folder. */
async function fileItCameFrom(folder: string): Promise<RunSpec | undefined> {
  try {
    const resolved = JSON.parse(await readText(join(folder, 'run.resolved.json'), 2 * MOST_BYTES)) as { file?: unknown };
    if (typeof resolved.file !== 'string') return undefined;
    const run = readRunFile(await readText(resolved.file, MOST_BYTES), resolved.file);
    return run.folder === folder ? run : undefined;
  } catch {
    return undefined;
  }
}

/** Of what a first start makes in a run folder before it copies the run file there, something is left. */
async function isRunFolder(path: string): Promise<boolean> {
  const made = ['lock.sqlite', 'ledger.sqlite', 'run.resolved.json'].map((name) => stat(join(path, name)));
  return (await Promise.allSettled(made)).some(({ status }) => status === 'fulfilled');
}

/** Taken for a run folder, it would become one, with its sources looked for two folders up. */
function besideRunFile(argument: string): AerieError {
  return new AerieError('run.absent', `${argument} is the folder of a run file, not a run folder.`, {
    remedy: `Give the run file: ${join(argument, 'run.yaml')}`,
  });
}

const UNREADABLE: Readonly<Record<string, string>> = {
  NOT_A_FILE: 'it is a pipe or a device, and a resume reads the run file again',
  TOO_LARGE: `it has more than ${MOST_BYTES / 2 ** 20} MiB, so it is no run file`,
  EACCES: 'this user may not (EACCES)',
};

function missing(argument: string, path: string, code: string): AerieError {
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return new AerieError('run-file.missing', `There is no ${argument}.`, {
      because: `Looked at ${path}.`,
      remedy: 'Give the path of a run file or of a run folder, or write a run file with: aerie init',
    });
  }
  return new AerieError('run-file.missing', `${argument} cannot be read: ${UNREADABLE[code] ?? code}.`, {
    remedy: 'Give a run file that can be read; aerie init writes one. Nothing was started.',
  });
}

function noRunFolder(argument: string): AerieError {
  return new AerieError('run.absent', `${argument} is a folder without a run.yaml, so it is not a run.`, {
    remedy: 'Give the run file, or the folder runs/NAME beside it.',
  });
}
