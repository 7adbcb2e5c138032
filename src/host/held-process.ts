/**
 * A program that lives as long as we hold its stdin: it is to end when that closes, so that a kill of Aerie, by SIGKILL too, ends
 * it without anybody doing anything. Its lines are heard; its end is a value.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { systemCodeOf } from '../base/errors.ts';

export interface HeldRequest {
  readonly file: string;
  readonly args: readonly string[];
  /** The whole environment: nothing is added to it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly hearLine: (line: string) => void;
  /** Told each line of stderr. */
  readonly hearError?: (line: string) => void;
}

export interface HeldEnd {
  /** undefined where a signal ended it, or where it was never started. */
  readonly code: number | undefined;
  /** The last words on stderr, or why it was not started. */
  readonly stderr: string;
}

export interface HeldProcess {
  /** Resolves when it has ended; never rejects. */
  readonly ended: Promise<HeldEnd>;
  /** A line to its stdin; one that has ended hears nothing. */
  say(line: string): void;
  /** SIGTERM, then SIGKILL after `graceMs`; resolves when it has ended. Safe to call again. */
  stop(graceMs: number): Promise<void>;
}

/** Enough for the reason of an end; a program that lives for days may say something at every request. */
const LAST_CHARACTERS = 10_000;

export function holdProcess(request: HeldRequest): HeldProcess {
  // A process group of its own: Ctrl-C at the terminal reaches Aerie alone, which drains first.
  const child = spawn(request.file, request.args, { env: { ...request.env }, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.on('error', () => undefined); // its end tells it
  createInterface({ input: child.stdout }).on('line', request.hearLine);
  if (request.hearError !== undefined) createInterface({ input: child.stderr }).on('line', request.hearError);
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-LAST_CHARACTERS);
  });
  const failed = once(child, 'error').then(([thrown]): HeldEnd => ({ code: undefined, stderr: describe(request.file, thrown) }));
  const exited = once(child, 'exit').then(([code]): HeldEnd => ({ code: (code as number | null) ?? undefined, stderr }));
  const ended = Promise.race([exited, failed]).catch((): HeldEnd => ({ code: undefined, stderr }));
  return {
    ended,
    say: (line) => void child.stdin.write(`${line}\n`),
    async stop(graceMs) {
      child.stdin.destroy();
      child.kill('SIGTERM');
      const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
      await ended;
      clearTimeout(timer);
    },
  };
}

function describe(file: string, thrown: unknown): string {
  const code = systemCodeOf(thrown);
  if (code === 'ENOENT') return `${file} is not installed here`;
  return code === 'EACCES' ? `${file} may not be executed` : `${file} did not start: ${code}`;
}
