/**
 * Short commands: run to the end, output captured, never longer than `timeoutMs`. The result is a value; a command that
 * is not installed, fails or takes too long never throws. (Servers are started by `processes.ts`.)
 */
import { execa } from 'execa';
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
  const result = await execa(request.file, [...request.args], {
    env,
    extendEnv: false,
    stdin: 'ignore', // a command that asks a question must not wait for an answer
    timeout: request.timeoutMs,
    reject: false,
    maxBuffer: OUTPUT_CHARACTERS,
    ...(request.signal === undefined ? {} : { cancelSignal: request.signal }),
  });
  if (result.timedOut) return { kind: 'timeout' };
  if (result.isCanceled) return { kind: 'aborted' };
  if (result.exitCode !== undefined)
    return { kind: 'ended', code: result.exitCode, stdout: result.stdout, stderr: result.stderr };
  if (systemCodeOf(result.cause) === 'ENOENT' || systemCodeOf(result) === 'ENOENT') return { kind: 'absent' };
  return { kind: 'died', because: result.shortMessage ?? `${request.file} was ended by ${result.signal ?? 'an error'}` };
}
