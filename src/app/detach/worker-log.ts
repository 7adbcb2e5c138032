/**
 * Where the words of a detached worker go: `logs/worker.log`, those of workers before it in `worker.log.1` … `.5`. A worker
 * begins in a file of its own name and takes the place when it holds the run, so that one that is refused never touches the log
 * of the one at work.
 *
 * Promises: bounded (`MOST_BYTES` times `KEPT` + 1); no failure here reaches the run.
 */
import { copyFileSync, existsSync, readdirSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs';
import { join } from 'node:path';

export const WORKER_LOG = 'worker.log';
const BEGINNING = /^worker\.log\.begins-\d+$/;
/** Lines of a run are some 100 KB a day; this is for the run that says far more than it should. */
const MOST_BYTES = 8 * 2 ** 20;
const KEPT = 5;
const LOOK_EVERY_MS = 30_000;

export function logOf(folder: string): string {
  return join(folder, 'logs', WORKER_LOG);
}

/** For a worker that has not begun; `number` tells it from others. */
export function beginningLog(folder: string, number: number): string {
  return join(folder, 'logs', `${WORKER_LOG}.begins-${number}`);
}

/** Whoever holds the run calls it: its own words are `worker.log` from here on. */
export function takePlace(folder: string, beginning: string): void {
  const log = logOf(folder);
  quietly(() => {
    shift(log);
    if (existsSync(log)) renameSync(log, `${log}.1`);
  });
  quietly(() => renameSync(beginning, log));
  // Of those that were killed before they began.
  quietly(() => {
    for (const name of readdirSync(join(folder, 'logs')))
      if (BEGINNING.test(name)) rmSync(join(folder, 'logs', name), { force: true });
  });
}

/** Looks now and then; the answer ends that. */
export function keepBounded(log: string, mostBytes = MOST_BYTES, everyMs = LOOK_EVERY_MS): () => void {
  const timer = setInterval(() => quietly(() => cutLong(log, mostBytes)), everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

/** Copied and emptied, never moved: its writer has it open, and appends from the beginning of an empty file. */
export function cutLong(log: string, mostBytes: number): void {
  if (statSync(log).size <= mostBytes) return;
  shift(log);
  // A disk that has no room for the copy keeps the words that are there, and gets room by losing the rest.
  quietly(() => copyFileSync(log, `${log}.1`));
  truncateSync(log, 0);
}

/** `.4` becomes `.5`, … `.1` becomes `.2`. */
function shift(log: string): void {
  for (let at = KEPT - 1; at >= 1; at--) if (existsSync(`${log}.${at}`)) renameSync(`${log}.${at}`, `${log}.${at + 1}`);
}

function quietly(act: () => void): void {
  try {
    act();
  } catch {
    // the ledger and logs/aerie.log have everything that happened
  }
}
