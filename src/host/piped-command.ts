/**
 * A program that is fed on stdin and heard byte by byte, to its end. Its stdin stays open until it has said all that is wanted, so
 * that a program which watches its stdin knows when its starter is gone, however that came about.
 *
 * Promises: it hears no Ctrl-C of Aerie's terminal; it is over soon after it was heard or given up, and nothing of it holds Aerie
 * back; the answer is a value. Only the program itself is ended: what it has started sees its own pipes close.
 */
import { type ProgramRequest, spawnProgram } from './spawn-program.ts';

export interface PipedRequest extends ProgramRequest {
  readonly input: Uint8Array;
  /** Given every piece of stdout; true = all is said, and stdin is closed. What it says later is dropped. */
  readonly hear: (bytes: Uint8Array) => boolean;
  /** Ends it, for whatever reason: the time is up, the owner gives up. */
  readonly signal: AbortSignal;
}

export type PipedEnd =
  /** `code` is undefined where a signal ended it, where it was heard and did not end by itself, and where it could not be started for now. */
  | { readonly kind: 'ended'; readonly code: number | undefined; readonly stderr: string }
  /** It cannot be started: not installed, not executable. */
  | { readonly kind: 'absent'; readonly because: string }
  | { readonly kind: 'cut'; readonly stderr: string };

/** Far above what a program complains. */
const STDERR_CHARACTERS = 1_000_000;
/** From its last word to its end: some milliseconds, as a rule. */
const LEAVE_MS = 2_000;

export async function runPiped(request: PipedRequest): Promise<PipedEnd> {
  if (request.signal.aborted) return { kind: 'cut', stderr: '' };
  const child = spawnProgram(request);
  if (child instanceof Promise) {
    const { because, isShortage } = await child;
    return isShortage ? { kind: 'ended', code: undefined, stderr: because } : { kind: 'absent', because };
  }
  const { stdin, stdout, stderr } = child;
  for (const stream of [stdin, stdout, stderr]) stream.on('error', () => undefined); // its end tells it
  let said = '';
  stderr.setEncoding('utf8').on('data', (text: string) => {
    if (said.length < STDERR_CHARACTERS) said += text;
  });
  /** Its pipes may be held by what it has started; nobody waits for those. */
  const end = () => {
    child.kill('SIGKILL');
    for (const stream of [stdin, stdout, stderr]) stream.destroy();
  };
  let leave: NodeJS.Timeout | undefined;
  let isHeard = false;
  stdout.on('data', (bytes: Uint8Array) => {
    if (isHeard || !request.hear(bytes)) return;
    isHeard = true;
    stdin.end();
    leave ??= setTimeout(end, LEAVE_MS);
  });
  let isCut = false;
  const cut = () => {
    isCut = !isHeard;
    end();
  };
  request.signal.addEventListener('abort', cut, { once: true });
  child.once('exit', () => {
    // What it has written is read; a pipe that somebody else still holds is not waited for.
    leave ??= setTimeout(end, LEAVE_MS);
  });
  stdin.write(request.input);
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  clearTimeout(leave);
  request.signal.removeEventListener('abort', cut);
  if (isCut) return { kind: 'cut', stderr: said };
  return { kind: 'ended', code: code ?? undefined, stderr: said };
}
