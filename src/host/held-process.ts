/**
 * A program that lives as long as we hold its stdin: it is to end when that closes, so that a kill of Aerie, by SIGKILL too, ends
 * it without anybody doing anything. Its lines are heard; its end is a value.
 */
import { createInterface } from 'node:readline';
import { type ProgramRequest, spawnProgram } from './spawn-program.ts';

export interface HeldRequest extends ProgramRequest {
  readonly hearLine: (line: string) => void;
  /** Told each line of stderr. */
  readonly hearError?: (line: string) => void;
}

export interface HeldEnd {
  /** undefined where a signal ended it, or where it was never started. */
  readonly code: number | undefined;
  /** The last words on stderr, or why it was not started. */
  readonly stderr: string;
  /** It cannot be started: not installed, not executable. */
  readonly isAbsent: boolean;
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
  const child = spawnProgram(request);
  if (child instanceof Promise) {
    const ended = child.then(({ because, isShortage }): HeldEnd => ({ code: undefined, stderr: because, isAbsent: !isShortage }));
    return { ended, say: () => undefined, stop: async () => void (await ended) };
  }
  child.stdin.on('error', () => undefined); // its end tells it
  createInterface({ input: child.stdout }).on('line', request.hearLine);
  if (request.hearError !== undefined) createInterface({ input: child.stderr }).on('line', request.hearError);
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr = (stderr + text).slice(-LAST_CHARACTERS);
  });
  const ended = new Promise<HeldEnd>((resolve) =>
    child.once('exit', (code) => resolve({ code: code ?? undefined, stderr, isAbsent: false })),
  );
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
