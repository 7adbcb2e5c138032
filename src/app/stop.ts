/**
 * `aerie stop`: ends the worker of a run as Ctrl-C in its terminal would, wherever it was started, and waits until it has ended.
 * The process is signalled only if it is the one that holds the run; a worker that is draining already is not asked twice,
 * because a second Ctrl-C means another thing.
 */
import { AerieError } from '../base/errors.ts';
import { readHolder } from '../ledger/sqlite/worker-lock.ts';
import { signalProcess } from '../machine/local/observe.ts';
import type { OperationContext } from './context.ts';
import { findRun } from './find-run.ts';
import { openForReading } from './read-run.ts';
import { type Worker, workerOf } from './worker-of.ts';

export interface StopInput {
  /** Run file or run folder. */
  readonly run: string;
  /** Gives up what is in flight. */
  readonly now?: boolean;
}

export interface StopReport {
  readonly run: string;
  readonly folder: string;
  /** Of the worker that was ended; 0 = none worked. */
  readonly pid: number;
  readonly done: number;
  readonly enrolled: number;
  /** What was typed. */
  readonly argument: string;
}

const LOOK_EVERY_MS = 200;

export async function runStop({ run: argument, now = false }: StopInput, context: OperationContext): Promise<StopReport> {
  const { run } = await findRun(argument);
  const worker = await workerOf(run.folder);
  if (worker !== undefined) await endWorker(run.folder, worker, now, argument, context);
  return { run: run.name, folder: run.folder, pid: worker?.pid ?? 0, argument, ...(await countPrompts(argument, context)) };
}

async function endWorker(
  folder: string,
  worker: Worker,
  now: boolean,
  argument: string,
  context: OperationContext,
): Promise<void> {
  const { clock } = context.host;
  if (now || !worker.isDraining) await signal(folder, worker, now ? 'SIGTERM' : 'SIGINT');
  context.onNote(
    now
      ? `pid ${worker.pid} gives up what is in flight, commits and ends`
      : `pid ${worker.pid} finishes what is in flight, commits and ends; Ctrl-C ends the waiting alone`,
  );
  while (!context.drain.aborted) {
    const found = await workerOf(folder);
    if (found?.pid !== worker.pid || found.startedAt !== worker.startedAt) return;
    await clock.sleep(LOOK_EVERY_MS, context.drain);
  }
  throw new AerieError('run.interrupted', `Stopped waiting. The worker, pid ${worker.pid}, goes on finishing and then ends.`, {
    remedy: `Wait again: aerie stop ${argument}\nGive up what is in flight: aerie stop ${argument} --now`,
  });
}

async function signal(folder: string, { pid, host, presence }: Worker, name: 'SIGINT' | 'SIGTERM'): Promise<void> {
  const typed = `kill ${name === 'SIGINT' ? '-INT' : '-TERM'} ${pid}`;
  const holder = readHolder(folder);
  if (presence === 'unknown')
    throw notStopped(`The worker is pid ${pid} on ${host}, and from here it cannot be seen.`, `On ${host}: ${typed}`);
  // Without a start time (macOS) nobody can say that it is still the same process: a person decides.
  if (holder?.pid !== pid || holder.startTicks === undefined || holder.bootId === undefined)
    throw notStopped(`This system does not tell whether pid ${pid} is still the worker.`, `See for yourself, then: ${typed}`);
  const { startTicks, bootId } = holder;
  const result = await signalProcess({ pid, startTicks, bootId, command: '' }, name);
  if (result === 'not-permitted') throw notStopped(`The worker, pid ${pid}, is of another user.`, `As that user: ${typed}`);
}

function notStopped(message: string, remedy: string): AerieError {
  return new AerieError('control.refused', message, { remedy: `${remedy}\nNothing was signalled.` });
}

/** A run that has not come to its ledger has none. */
async function countPrompts(argument: string, { host }: OperationContext): Promise<{ done: number; enrolled: number }> {
  try {
    const { ledger } = await openForReading(argument, host);
    const partitions = ledger.partitions();
    ledger.close();
    const sum = (key: 'done' | 'enrolled') => partitions.reduce((total, partition) => total + partition[key], 0);
    return { done: sum('done'), enrolled: sum('enrolled') };
  } catch (thrown) {
    if (thrown instanceof AerieError && thrown.code === 'run.absent') return { done: 0, enrolled: 0 };
    throw thrown;
  }
}
