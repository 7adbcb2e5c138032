/**
 * Many command lines through one process: for tables of inputs where a process of its own says nothing more, and its start
 * would be most of the time. The real entry, the real process, its real streams; the result is that of `aerie()` in cli.ts.
 *
 * Promises: one command line at a time, each until a process of its own would have ended. Where one ends the process (an exit, an
 * exception, a rejection that nobody handled), that is its result, and the next has a new one. One that does not end, or that
 * leaves a listener for a signal, fails by its name. Of a project, the first of each command in a file is a process of its own, and
 * so is what can only be given to one (flags of node, NODE_… in the environment).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { aerie, type CliOptions, type CliResult, environment, MAIN, type Project, resultOf } from './cli.ts';

const PROGRAM = fileURLToPath(new URL('./cli-door.mjs', import.meta.url));
/** As main.ts sets it. */
const NODE_ARGS = ['--no-allocation-site-pretenuring'];
/** Below the 120 s of a test, so that it is the door that says which command line it was. */
const ENDS_WITHIN_MS = 90_000;
const SAYS_WITHIN_MS = 5_000;

export interface CliDoor {
  aerie(args: readonly string[], options: CliOptions): Promise<CliResult>;
  /** The same project, its commands through this door. What it starts with `start` is a process of its own, as ever. */
  through<P extends Project>(project: P): P;
}

export interface DoorOptions {
  /** Flags of node for the process behind the door. */
  readonly nodeArgs?: readonly string[];
  readonly endsWithinMs?: number;
}

/** For the tests of a file: its process starts with the first command line and ends after the last test. */
export function openDoor(options: DoorOptions = {}): CliDoor {
  let room: Room | undefined;
  let last: Promise<unknown> = Promise.resolve();
  const isFirstOf = countCommands();
  afterAll(() => room?.close());
  const perform = async (args: readonly string[], given: CliOptions): Promise<CliResult> => {
    const needs = whatNeedsAProcess(given);
    if (needs.length > 0) throw new Error(`this needs a process of its own: ${needs.join(', ')}`);
    if (room === undefined || room.isClosed()) room = await openRoom(options);
    return await room.perform(args, given);
  };
  const door: CliDoor = {
    aerie(args, given) {
      const result = last.then(() => perform(args, given));
      last = result.catch(() => undefined);
      return result;
    },
    through: (project) => ({
      ...project,
      aerie(args, given = {}) {
        const isFirst = isFirstOf(args);
        const options = { cwd: project.folder, ...given };
        return isFirst || whatNeedsAProcess(options).length > 0 ? aerie(args, options) : door.aerie(args, options);
      },
    }),
  };
  return door;
}

/** Whether a command of this name was not given before. */
function countCommands(): (args: readonly string[]) => boolean {
  const given = new Set<string>();
  return ([command = '']) => {
    const isFirst = /^[a-z]+$/.test(command) && !given.has(command);
    given.add(command);
    return isFirst;
  };
}

function whatNeedsAProcess({ nodeArgs, onLine, env = {} }: CliOptions): readonly string[] {
  const needs = Object.keys(env).filter((name) => name.startsWith('NODE_'));
  if (nodeArgs !== undefined) needs.push('flags of node');
  if (onLine !== undefined) needs.push('onLine');
  return needs;
}

/** What the process says: that it is there, what a command line that has not ended waits for, and its end. */
type Said =
  | { readonly kind: 'ready' }
  | { readonly kind: 'waits'; readonly isAnswered: boolean; readonly for: readonly string[] }
  | { readonly kind: 'ended'; readonly code: number; readonly listensFor: readonly string[] };

interface Room {
  perform(args: readonly string[], options: CliOptions): Promise<CliResult>;
  isClosed(): boolean;
  close(): void;
}

async function openRoom({ nodeArgs = [], endsWithinMs = ENDS_WITHIN_MS }: DoorOptions): Promise<Room> {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} is not built: npx tsc -p tsconfig.build.json`);
  const child = spawn(process.execPath, [...NODE_ARGS, ...nodeArgs, PROGRAM], {
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const [stdout, stderr] = [hear(child.stdout), hear(child.stderr)];
  await new Promise((resolve, reject) => {
    child.once('message', resolve).once('error', reject).once('close', reject);
  }).catch(() => Promise.reject(new Error(`the process behind the door did not start:\n${stderr.take()}`)));
  return {
    isClosed: () => child.exitCode !== null || child.signalCode !== null || !child.connected,
    close: () => void child.kill('SIGKILL'),
    perform: (args, { cwd, env }) =>
      new Promise((resolve, reject) => {
        const startedMs = performance.now();
        const mark = `\0${randomUUID()}\n`;
        const settle = () => {
          hang.stop();
          child.off('message', onMessage).off('close', onEnd);
          return { stdout: stdout.take(mark), stderr: stderr.take(mark) };
        };
        const onEnd = (code: number | null, signal: NodeJS.Signals | null) =>
          resolve(resultOf({ code, signal, ...settle() }, startedMs));
        const fail = (because: string) => {
          child.kill('SIGKILL');
          reject(new Error(`aerie ${JSON.stringify(args)}: ${because}\n${Object.values(settle()).join('\n')}`));
        };
        const hang = watchForHang(child, endsWithinMs, fail);
        const onMessage = (said: Said) => {
          if (said.kind === 'waits') return fail(describeHang(said, endsWithinMs));
          if (said.kind === 'ready') return;
          if (said.listensFor.length > 0) return fail(`left a listener for ${said.listensFor.join(', ')}`);
          // The marks come by the streams, the message by another way: either may be first.
          void Promise.all([stdout.until(mark), stderr.until(mark)]).then(() => onEnd(said.code, null));
        };
        child.on('message', onMessage).on('close', onEnd);
        child.send({ mark, args, cwd, env: environment(env) });
      }),
  };
}

/** When the time is up it asks what still keeps the process alive, and does not wait long for the answer. */
function watchForHang(child: ChildProcess, withinMs: number, fail: (because: string) => void): { stop(): void } {
  let timer = setTimeout(() => {
    timer = setTimeout(
      () => fail(`does not end within ${withinMs / 1000} s; its event loop stands`),
      Math.min(withinMs, SAYS_WITHIN_MS),
    );
    if (child.connected) child.send('what?');
  }, withinMs);
  return { stop: () => clearTimeout(timer) };
}

function describeHang({ isAnswered, for: what }: Extract<Said, { kind: 'waits' }>, withinMs: number): string {
  const state = isAnswered ? 'it has answered, and what it left keeps it alive' : 'it has not answered, and waits for';
  return `does not end within ${withinMs / 1000} s; ${state}: ${what.join(', ')}`;
}

interface Heard {
  /** All up to the mark, or all there is; it is forgotten, with the mark. */
  take(mark?: string): string;
  until(mark: string): Promise<void>;
}

function hear(stream: Readable | null): Heard {
  if (stream === null) throw new Error('no pipe');
  let text = '';
  let onText = (): void => undefined;
  stream.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
    onText();
  });
  return {
    take(mark = '\0') {
      const at = text.indexOf(mark);
      const before = at === -1 ? text : text.slice(0, at);
      text = at === -1 ? '' : text.slice(at + mark.length);
      return before;
    },
    until: (mark) =>
      new Promise((resolve) => {
        onText = () => text.includes(mark) && resolve();
        onText();
      }),
  };
}
