/**
 * Runs one operation for the command line: signals in, answer or error out, exit code from the error's fault.
 *
 * Ctrl-C once: drain. Twice, or SIGTERM: give up what is in flight, commit, exit. A terminal that closes (SIGHUP) drains what was
 * started in it: nobody is left to see or to stop it. What has no terminal (nohup, a scheduler, --detach) goes on. If committing itself hangs, the process ends ten seconds after the second signal: a kill is always safe.
 */

import { setMaxListeners } from 'node:events';
import { isatty } from 'node:tty';
import type { OperationContext } from '../app/context.ts';
import { closeMachines } from '../app/servers/opened-machines.ts';
import { AerieError, bug, systemCodeOf } from '../base/errors.ts';
import type { CliContext } from './cli-context.ts';
import { renderErrorJson } from './render/error-json.ts';
import { renderBugText, renderErrorText } from './render/error-text.ts';
import { printable } from './render/printable.ts';
import type { Terminal } from './terminal.ts';

const HARD_STOP_MS = 10_000;

/** What a first Ctrl-C does to work that can be finished, and a terminal that closes too: said at once, before it is done. */
export const FINISHES = 'finishing what is in flight, then committing';

export interface Performed<T> {
  readonly command: string;
  readonly json: boolean;
  readonly terminal: Terminal;
  readonly operation: (context: OperationContext) => Promise<T>;
  /** The answer for people, without a final newline; undefined: the operation has given it piece by piece. */
  readonly render: ((answer: T) => string) | undefined;
  /** What `--json` prints of the answer, where that is not all of it. */
  readonly data?: (answer: T) => unknown;
  /** What a first Ctrl-C does. Left out: it only stops; nothing is at work that could be finished. */
  readonly interrupted?: string;
  /** Told an error before it is shown. */
  readonly onError?: (error: AerieError) => void;
  /** Exit code 1 where the answer is no. */
  readonly isNo?: (answer: T) => boolean;
  /** Shown after an answer that is given all the same; the exit code is its. */
  readonly failure?: (answer: T) => AerieError | undefined;
}

export async function perform<T>(cli: CliContext, performed: Performed<T>): Promise<void> {
  const { node } = cli;
  const { json, terminal, interrupted = 'stopping; Ctrl-C again ends it at once' } = performed;
  const finishes = interrupted === FINISHES;
  const drain = new AbortController();
  const abort = new AbortController();
  setMaxListeners(0, drain.signal, abort.signal); // every question to a machine listens while it waits
  let hardStop: NodeJS.Timeout | undefined;
  const giveUp = (signal: 'SIGINT' | 'SIGTERM') => {
    if (abort.signal.aborted) return;
    abort.abort(signal);
    drain.abort(signal);
    hardStop = setTimeout(() => node.exit(signal === 'SIGTERM' ? 143 : 130), HARD_STOP_MS);
    hardStop.unref();
  };
  const onInterrupt = () => {
    if (drain.signal.aborted) return giveUp('SIGINT');
    terminal.say(`Ctrl-C: ${interrupted}.${finishes ? ' Ctrl-C again gives it up.' : ''}`);
    drain.abort('SIGINT');
  };
  const onTerminate = () => giveUp('SIGTERM');
  const isInTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor)); // asked now: one that has closed is none
  const onHangUp = () => {
    if (!isInTerminal || drain.signal.aborted) return;
    terminal.say(`The terminal has closed${finishes ? `: ${interrupted}` : ''}.`);
    drain.abort('SIGHUP');
  };
  /** Whoever read what is given piece by piece has enough. */
  const onLost = (thrown: unknown) => performed.render === undefined && drain.abort(systemCodeOf(thrown));
  node.on('SIGINT', onInterrupt).on('SIGTERM', onTerminate).on('SIGHUP', onHangUp);
  node.stdout.on('error', onLost);
  let host: OperationContext['host'] | undefined;
  try {
    host = await cli.makeHost();
    const answer = await performed.operation({
      host,
      onEvent: (event) => terminal.event(event),
      onNote: (text) => terminal.say(text),
      onProgress: (snapshot) => terminal.watch(snapshot),
      drain: drain.signal,
      abort: abort.signal,
    });
    terminal.close();
    tellAnswer(node, performed, answer);
  } catch (thrown) {
    terminal.close();
    const error = thrown instanceof AerieError ? thrown : asError(thrown, drain.signal);
    performed.onError?.(error);
    tellError(node, json, error);
  } finally {
    node.off('SIGINT', onInterrupt).off('SIGTERM', onTerminate).off('SIGHUP', onHangUp);
    node.stdout.off('error', onLost);
    if (host !== undefined) await closeMachines(host);
    clearTimeout(hardStop);
  }
}

type Answering<T> = Pick<Performed<T>, 'command' | 'json' | 'render' | 'data' | 'isNo' | 'failure'>;

/** An operation that only looks things up: no host is built, no signal is awaited. */
export async function lookUp<T>({ node }: CliContext, answering: Answering<T>, operation: () => Promise<T>): Promise<void> {
  try {
    tellAnswer(node, answering, await operation());
  } catch (thrown) {
    tellError(node, answering.json, thrown instanceof AerieError ? thrown : asError(thrown, new AbortController().signal));
  }
}

function tellAnswer<T>(node: NodeJS.Process, answering: Answering<T>, answer: T): void {
  const { command, json, render, data, isNo, failure } = answering;
  const shown = json && data !== undefined ? data(answer) : answer;
  if (json) node.stdout.write(`${JSON.stringify({ aerie: 1, command, data: shown })}\n`);
  else if (render !== undefined) node.stdout.write(`${printable(render(answer))}\n`);
  if (isNo?.(answer)) node.exitCode = 1;
  const failed = failure?.(answer);
  if (failed === undefined) return;
  node.exitCode = failed.exitCode;
  if (!json) node.stderr.write(printable(renderErrorText(failed, node.stderr.isTTY)));
}

function tellError(node: NodeJS.Process, json: boolean, error: AerieError): void {
  node.exitCode = error.exitCode;
  if (json) node.stdout.write(renderErrorJson(error));
  else {
    const text = error.fault === 'bug' ? renderBugText(error.cause ?? error) : renderErrorText(error, node.stderr.isTTY);
    node.stderr.write(printable(text));
  }
}

/** An operation that was stopped before it had anything to say rejects with the signal's reason. */
function asError(thrown: unknown, drain: AbortSignal): AerieError {
  if (drain.aborted) {
    const code = drain.reason === 'SIGTERM' ? 'run.terminated' : 'run.interrupted';
    return new AerieError(
      code,
      'Stopped before anything was asked.',
      { remedy: 'Nothing was lost. The same command begins again.' },
      thrown,
    );
  }
  const error = bug(thrown instanceof Error ? thrown.message : String(thrown));
  return new AerieError(error.code, error.message, error.detail, thrown);
}
