/**
 * Short commands: run to the end, output captured, never longer than `timeoutMs`. The result is a value; a command that
 * is not installed, fails or takes too long never throws. (Servers are started by `processes.ts`.)
 */
import type { Readable } from 'node:stream';
import { type NotStarted, type ProgramRequest, spawnProgram } from './spawn-program.ts';

export interface CommandRequest extends ProgramRequest {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export type CommandResult =
  | { readonly kind: 'ended'; readonly code: number; readonly stdout: string; readonly stderr: string }
  | { readonly kind: 'absent' }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'aborted' }
  | { readonly kind: 'died'; readonly because: string };

/** Enough for any short command's output; a command that prints more is cut, not kept in memory. */
const OUTPUT_CHARACTERS = 4_000_000;

export async function runCommand(request: CommandRequest): Promise<CommandResult> {
  if (request.signal?.aborted) return { kind: 'aborted' };
  const child = spawnProgram(request);
  if (child instanceof Promise) return describeNotStarted(await child);
  const { pid, stdin } = child;
  stdin.on('error', () => undefined).end(); // a command that asks a question must not wait for an answer
  const [stdout, stderr] = [keepText(child.stdout), keepText(child.stderr)];
  const ended = new Promise<CommandResult>((resolve) =>
    child.once('close', (code, signal) => {
      if (code !== null) resolve({ kind: 'ended', code, stdout: stdout(), stderr: stderr() });
      else resolve({ kind: 'died', because: `${request.file} was ended by ${signal}` });
    }),
  );
  const cut = cutShort(request);
  running.add(pid);
  const result = await Promise.race([ended, cut.reason]);
  cut.close();
  running.delete(pid);
  if (typeof result !== 'string') return result;
  // Not waited for: a command that hangs in a driver does not even end by SIGKILL.
  endGroup(pid);
  for (const stream of [child.stdout, child.stderr]) stream.destroy();
  child.unref();
  return { kind: result };
}

function describeNotStarted({ code, because }: NotStarted): CommandResult {
  return code === 'ENOENT' ? { kind: 'absent' } : { kind: 'died', because };
}

/** Its text so far, without the newline that ends it. */
function keepText(stream: Readable): () => string {
  let text = '';
  stream.on('error', () => undefined); // its end tells it
  stream.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
    if (text.length > OUTPUT_CHARACTERS) stream.destroy();
  });
  return () => text.slice(0, OUTPUT_CHARACTERS).replace(/\r?\n$/, '');
}

/** Settles when the time is up or the owner gives up, whichever is first. */
function cutShort({ timeoutMs, signal }: CommandRequest): { readonly reason: Promise<'timeout' | 'aborted'>; close(): void } {
  let close = (): void => undefined;
  const reason = new Promise<'timeout' | 'aborted'>((resolve) => {
    const abort = () => resolve('aborted');
    const timer = setTimeout(() => resolve('timeout'), timeoutMs);
    signal?.addEventListener('abort', abort, { once: true });
    if (signal?.aborted) abort();
    close = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    };
  });
  return { reason, close };
}

/** Their own groups hear no Ctrl-C of Aerie's terminal: whatever ends Aerie in order ends them. */
const running = new Set<number>();
process.on('exit', () => {
  for (const pid of running) endGroup(pid);
});

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it has ended meanwhile
  }
}
