/**
 * `aerie run --detach`: starts a worker that goes on when the terminal, the ssh session or this command is gone, and returns
 * when it works: it holds the run and has said so. A worker that ends before that is shown with its own error.
 *
 * Ctrl-C while waiting ends the worker too: who is told nothing has nothing left behind. A terminal that closes while
 * waiting leaves it going, and so does a kill of this command.
 */
import { existsSync } from 'node:fs';
import { mkdir, rm, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AerieError, bug, systemCodeOf } from '../../base/errors.ts';
import type { ProcessExit } from '../../host/processes.ts';
import { readText } from '../../host/read-text.ts';
import { startWorker, type WorkerProcess } from '../../host/worker-process.ts';
import type { OperationContext } from '../context.ts';
import { findRun } from '../find-run.ts';
import { refuseNetworkDisk } from '../refuse-network-disk.ts';
import { DETACHED } from './as-worker.ts';
import { errorOfWord, readWord, type WorkerWord } from './words.ts';
import { beginningLog, logOf } from './worker-log.ts';

export interface DetachInput {
  /** Run file or run folder. */
  readonly run: string;
  /** This command without --detach and --json. */
  readonly command: { readonly file: string; readonly args: readonly string[] };
}

export interface DetachReport {
  readonly run: string;
  readonly folder: string;
  readonly pid: number;
  /** Where its words go; '' = nowhere, because no file could be made. */
  readonly log: string;
  /** What was typed, for the commands that come next. */
  readonly argument: string;
}

export async function runDetached({ run: argument, command }: DetachInput, context: OperationContext): Promise<DetachReport> {
  const { run } = await findRun(argument);
  await refuseNetworkDisk(run.folder);
  const place = await makePlace(run.folder, context.host.pid);
  const env = { ...context.host.env, [DETACHED]: place.log };
  const worker = await startWorker({ ...command, env, logPath: place.log });
  const unhear = passSignalsOn(worker, context);
  try {
    const last = await hear(worker, context);
    if (last === 'begun' && !isInterrupted(context)) {
      return { run: run.name, folder: run.folder, pid: worker.pid, log: place.log === '' ? '' : logOf(run.folder), argument };
    }
    if (last === 'closed') throw closedMeanwhile(worker.pid, argument);
    const exit = await worker.ended;
    if (typeof last === 'object') throw errorOfWord(last);
    if (isInterrupted(context)) throw stoppedMeanwhile(argument, last === 'begun');
    throw endedSilently(exit, await lastWords(place.log));
  } finally {
    unhear();
    worker.letGo();
    await place.leave();
  }
}

type Heard = 'begun' | 'silent' | 'closed' | Extract<WorkerWord, { kind: 'failed' }>;

/** What it says before it works is shown as if it worked here. `closed`: the terminal has, and nobody listens any more. */
async function hear(worker: WorkerProcess, { onNote, onEvent, drain }: OperationContext): Promise<Heard> {
  const listen = async (): Promise<Heard> => {
    for await (const line of worker.lines) {
      const word = readWord(line);
      if (word?.kind === 'note') onNote(word.text);
      if (word?.kind === 'event') onEvent(word.event);
      if (word?.kind === 'failed') return word;
      if (word?.kind === 'begun') return 'begun';
    }
    return 'silent';
  };
  const closed = new Promise<Heard>((resolve) => {
    const look = () => {
      if (drain.reason === 'SIGHUP') resolve('closed');
    };
    drain.addEventListener('abort', look, { once: true });
    if (drain.aborted) look();
  });
  return await Promise.race([listen(), closed]);
}

function isInterrupted({ drain }: OperationContext): boolean {
  return drain.aborted && drain.reason !== 'SIGHUP';
}

/** The first Ctrl-C lets it finish what it has begun, a second or SIGTERM ends it. It is in no group that a terminal reaches. */
function passSignalsOn(worker: WorkerProcess, { drain, abort }: OperationContext): () => void {
  const onDrain = () => {
    if (drain.reason === 'SIGINT') worker.kill('SIGINT');
  };
  const onAbort = () => worker.kill('SIGTERM');
  drain.addEventListener('abort', onDrain, { once: true });
  abort.addEventListener('abort', onAbort, { once: true });
  if (drain.aborted) onDrain();
  if (abort.aborted) onAbort();
  return () => {
    drain.removeEventListener('abort', onDrain);
    abort.removeEventListener('abort', onAbort);
  };
}

interface Place {
  /** '' = it cannot be made, and the worker says itself what that means for the run. */
  readonly log: string;
  /** Takes away what was made here and nobody has used. */
  leave(): Promise<void>;
}

/** A run that does not begin leaves nothing: folders that are made here go again where they stayed empty. */
async function makePlace(folder: string, number: number): Promise<Place> {
  const folders = [dirname(folder), folder, join(folder, 'logs')];
  const missing = folders.filter((path) => !existsSync(path)).toReversed();
  const log = beginningLog(folder, number);
  const leave = async () => {
    await rm(log, { force: true }); // a worker that has begun has given it another name
    for (const path of missing) await rmdir(path).catch(() => undefined);
  };
  try {
    await mkdir(join(folder, 'logs'), { recursive: true });
    await writeFile(log, '', { flag: 'w' });
    return { log, leave };
  } catch (thrown) {
    if (systemCodeOf(thrown) === '') throw thrown;
    return { log: '', leave: () => leave().catch(() => undefined) };
  }
}

/** Of a program that fell: a few lines, as Node or the system wrote them. */
const LAST_LINES = 20;
const MOST_BYTES = 2 ** 20;

async function lastWords(log: string): Promise<string[]> {
  const text = await readText(log, MOST_BYTES).catch(() => '');
  return text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .slice(-LAST_LINES);
}

function endedSilently({ code, signal }: ProcessExit, evidence: string[]): AerieError {
  const how = signal === undefined ? `with exit code ${code ?? '?'}` : `by ${signal}`;
  const { detail, message } = bug(`The worker ended ${how} before it began, without a word.`);
  return new AerieError('bug.invariant', message, { ...detail, evidence });
}

function stoppedMeanwhile(argument: string, hadBegun: boolean): AerieError {
  const what = hadBegun
    ? 'when the worker had just begun; it has committed and ended'
    : 'before the worker had begun; it has ended';
  return new AerieError('run.interrupted', `Stopped by Ctrl-C ${what}.`, {
    remedy: `The same command begins again: aerie run --detach ${argument}`,
  });
}

function closedMeanwhile(pid: number, argument: string): AerieError {
  return new AerieError('run.interrupted', `The terminal has closed. The worker goes on, pid ${pid}.`, {
    remedy: `Look: aerie status ${argument}\nEnd it: aerie stop ${argument}`,
  });
}
