/**
 * A process of a session of its own (setsid) that goes on when whoever started it has ended: no signal of a terminal reaches it.
 * Its stdin is empty, its words go to a file; until it begins its work it is heard on a pipe of its own, descriptor 3.
 *
 * Promises: the end of the starter, however it ends, is nothing to it; the pipe is inherited by nothing that it starts (Node
 * closes what it was given to its children).
 * On failure: what says nothing any more has ended, and `ended` says how.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { ProcessExit } from './processes.ts';

export interface WorkerRequest {
  readonly file: string;
  readonly args: readonly string[];
  /** The whole environment: nothing is added to it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** stdout and stderr are appended here; '' = they go nowhere. */
  readonly logPath: string;
}

export interface WorkerProcess {
  readonly pid: number;
  /** What it says on its pipe, line by line; the end of the pipe ends them. */
  readonly lines: AsyncIterable<string>;
  readonly ended: Promise<ProcessExit>;
  kill(signal: NodeJS.Signals): void;
  /** Not heard any more: this process may end, and that one goes on. */
  letGo(): void;
}

/** Behind stdin, stdout and stderr. */
const PIPE = 3;

/** Throws what the system says where the program cannot be started. */
export async function startWorker({ file, args, env, logPath }: WorkerRequest): Promise<WorkerProcess> {
  const log = logPath === '' ? 'ignore' : openSync(logPath, 'a');
  let child: ChildProcess;
  try {
    child = spawn(file, args, { detached: true, env: { ...env }, stdio: ['ignore', log, log, 'pipe'] });
  } finally {
    if (log !== 'ignore') closeSync(log);
  }
  const ended = once(child, 'exit').then(([code, signal]): ProcessExit => {
    return { code: (code as number | null) ?? undefined, signal: (signal as string | null) ?? undefined };
  });
  ended.catch(() => undefined); // a program that is not there: told by `spawn` below
  await once(child, 'spawn');
  const pipe = child.stdio[PIPE] as Readable;
  pipe.on('error', () => undefined);
  return {
    pid: child.pid ?? 0,
    lines: createInterface({ input: pipe }),
    ended,
    kill: (signal) => void child.kill(signal),
    letGo() {
      pipe.destroy();
      child.unref();
    },
  };
}

/** The worker's end of the pipe. Whoever listened may be gone: then nobody hears, and nothing else changes. */
export interface WorkerPipe {
  say(line: string): void;
  close(): void;
}

/** A starter that stands still (Ctrl-Z) reads nothing, and a pipe that is full would hold the worker: far below what one holds. */
const MOST_CHARACTERS = 32 * 1024;

export function openWorkerPipe(): WorkerPipe {
  let isOpen = true;
  let said = 0;
  const attempt = (act: () => void) => {
    try {
      if (isOpen) act();
    } catch {
      isOpen = false;
    }
  };
  return {
    say(line) {
      said += line.length;
      if (said <= MOST_CHARACTERS) attempt(() => void writeSync(PIPE, `${line}\n`));
    },
    close() {
      attempt(() => closeSync(PIPE));
      isOpen = false;
    },
  };
}
