/**
 * A program with pipes, or why there is none. Node gives a child without pipes where no more files can be opened, and says so later in
 * an event that ends the process where nobody listens; other shortages it throws.
 */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { systemCodeOf } from '../base/errors.ts';

export interface ProgramRequest {
  readonly file: string;
  readonly args: readonly string[];
  /** The whole environment: nothing is added to it. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

export type Program = ChildProcessWithoutNullStreams & { readonly pid: number };

export interface NotStarted {
  /** Of the system: `ENOENT`. */
  readonly code: string;
  /** For people. */
  readonly because: string;
  /** It may be started a moment later: files, memory or processes have run out here. */
  readonly isShortage: boolean;
}

/** In a process group of its own: it hears no Ctrl-C of Aerie's terminal. */
export function spawnProgram({ file, args, env }: ProgramRequest): Program | Promise<NotStarted> {
  let child: ChildProcessWithoutNullStreams;
  try {
    child = spawn(file, args, { env: { ...env }, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
  } catch (thrown) {
    return Promise.resolve(explain(file, thrown));
  }
  const failed = new Promise<NotStarted>((resolve) => child.on('error', (thrown) => resolve(explain(file, thrown))));
  return isStarted(child) ? child : failed;
}

function isStarted(child: ChildProcessWithoutNullStreams): child is Program {
  return child.pid !== undefined;
}

function explain(file: string, thrown: unknown): NotStarted {
  const code = systemCodeOf(thrown);
  return { code, because: sayWhy(file, code), isShortage: ['EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM'].includes(code) };
}

function sayWhy(file: string, code: string): string {
  if (code === 'ENOENT') return `${file} is not installed here`;
  return code === 'EACCES' ? `${file} may not be executed` : `${file} did not start: ${code}`;
}
