/**
 * Short commands: run to the end, output captured, never longer than `timeoutMs`. The result is a value; a command that
 * is not installed, fails or takes too long never throws. (Servers are started by `processes.ts`.)
 */
import { systemCodeOf } from '../base/errors.ts';

export interface CommandRequest {
  readonly file: string;
  readonly args: readonly string[];
  /** The whole environment of the command: nothing is added to it. */
  readonly env: Readonly<Record<string, string | undefined>>;
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
  const env = Object.fromEntries(
    Object.entries(request.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const { execa } = await import('execa'); // a hundred modules, which most command lines never need
  const child = execa(request.file, [...request.args], {
    env,
    extendEnv: false,
    stdin: 'ignore', // a command that asks a question must not wait for an answer
    detached: true, // a process group of its own, so that what it has started can be ended with it
    reject: false,
    maxBuffer: OUTPUT_CHARACTERS,
  });
  const cut = cutShort(request);
  const { pid } = child;
  if (pid !== undefined) running.add(pid);
  const result = await Promise.race([child, cut.reason]);
  cut.close();
  if (pid !== undefined) running.delete(pid);
  if (result !== 'timeout' && result !== 'aborted') return describeEnd(request.file, result);
  // Not waited for: a command that hangs in a driver does not even end by SIGKILL.
  if (pid !== undefined) endGroup(pid);
  for (const stream of [child.stdout, child.stderr]) stream.destroy();
  child.unref();
  return { kind: result };
}

interface Ended {
  readonly exitCode?: number | undefined;
  readonly stdout?: string;
  readonly stderr?: string;
  readonly cause?: unknown;
  readonly shortMessage?: string | undefined;
  readonly signal?: string | undefined;
}

function describeEnd(file: string, result: Ended): CommandResult {
  const { exitCode: code, stdout = '', stderr = '' } = result;
  if (code !== undefined) return { kind: 'ended', code, stdout, stderr };
  if (systemCodeOf(result.cause) === 'ENOENT' || systemCodeOf(result) === 'ENOENT') return { kind: 'absent' };
  return { kind: 'died', because: result.shortMessage ?? `${file} was ended by ${result.signal ?? 'an error'}` };
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
