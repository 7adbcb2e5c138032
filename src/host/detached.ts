/**
 * A shell that outlives Aerie: in a session of its own, its script on stdin, heard until it has reported. Afterwards nothing
 * ties it to Aerie: Aerie's exit does not wait for it, and while Aerie lives it is reaped when it ends.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable } from 'node:stream';

export interface DetachedRequest {
  readonly file: string;
  readonly args: readonly string[];
  /** The whole environment: nothing is added to it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Given on stdin, which is closed after it. */
  readonly input: string;
  /** Told all that it has said so far; true ends the listening. */
  readonly isReport: (said: string) => boolean;
}

export interface DetachedReport {
  readonly said: string;
  readonly stderr: string;
}

/** Far above a report and a shell's complaint. */
const LISTEN_CHARACTERS = 100_000;

/** Resolves at the report, or when the shell has ended without one. Rejects where it cannot be started (ENOENT). */
export async function startDetached(request: DetachedRequest): Promise<DetachedReport> {
  const child = spawn(request.file, request.args, { detached: true, stdio: ['pipe', 'pipe', 'pipe'], env: { ...request.env } });
  await once(child, 'spawn');
  child.stdin.on('error', () => undefined); // it may have ended before it has read: its silence tells it
  child.stdin.end(request.input);
  const stderr = gather(child.stderr, () => false);
  const stdout = gather(child.stdout, request.isReport);
  await Promise.race([stdout.done, ended(child)]);
  const report = { said: stdout.text(), stderr: stderr.text() };
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
  child.unref();
  return report;
}

/** Ended, and all that it wrote was read. */
async function ended(child: ChildProcess): Promise<void> {
  await once(child, 'close');
}

function gather(stream: Readable, isEnough: (text: string) => boolean): { text(): string; done: Promise<void> } {
  let text = '';
  const done = new Promise<void>((resolve) => {
    stream.setEncoding('utf8').on('data', (piece: string) => {
      if (text.length < LISTEN_CHARACTERS) text += piece;
      if (isEnough(text)) resolve();
    });
    stream.on('error', () => undefined);
  });
  return { text: () => text, done };
}
