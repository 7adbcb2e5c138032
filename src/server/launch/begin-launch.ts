/**
 * Starts one launch: the log of the launch before moves aside, the intention is on disk before the process is, and the
 * process is on disk before anything is said about it. Killed anywhere between, the next Aerie finds what was started by its
 * marker.
 */
import { randomBytes } from 'node:crypto';
import { dirname, join } from 'node:path/posix';
import { AerieError } from '../../base/errors.ts';
import { quoteShell } from '../../base/quote-shell.ts';
import type { Dialect } from '../../engine/dialect.ts';
import { describeCommand, renderCommand } from '../../engine/launching.ts';
import type { Clock } from '../../host/host.ts';
import type { Containment } from '../../machine/contained/inside.ts';
import type { Machine } from '../../machine/machine.ts';
import type { Env, Flags } from '../recovery/recovery.ts';
import { containCommand } from './contained-command.ts';
import type { BookShelf, LaunchRecord, ServerBook } from './launch-book.ts';

/** What the run file says of a launch, beside its flags. */
export interface LaunchPlace {
  readonly server: string;
  readonly model: string;
  /** 0 = any free port. */
  readonly port: number;
  readonly setup: readonly string[];
  /** '' = the engine's usual one. */
  readonly command: string;
}

/** Absolute paths on the machine of the launch. */
export interface LaunchPaths {
  readonly workFolder: string;
  readonly logPath: string;
  /** Folder for exit statuses. */
  readonly stateFolder: string;
}

export interface BeginOptions {
  readonly place: LaunchPlace & LaunchPaths;
  readonly flags: Flags;
  readonly port: number;
  /** As it is told: secrets by name. */
  readonly env: Env;
  /** As it is given to the process. */
  readonly values: Env;
  readonly book: ServerBook;
  readonly shelf: BookShelf;
  readonly dialect: Dialect;
  readonly machine: Machine;
  readonly clock: Clock;
  readonly onStarting: (record: LaunchRecord) => void;
}

export async function beginLaunch(options: BeginOptions): Promise<{ readonly book: ServerBook; readonly record: LaunchRecord }> {
  const { place, flags, port, values, shelf, machine, onStarting } = options;
  const launching = options.dialect.launching;
  if (launching === undefined) throw new Error(`${options.dialect.name} is not an engine that can be launched`);
  const marker = `${place.server}-${options.book.launches + 1}-${randomBytes(8).toString('hex')}`; // 64 random bits: no two launches share one
  const command = place.command === '' ? launching.usualCommand : place.command;
  const contained = containCommand(command, { marker, port, envNames: Object.keys(values) });
  const words = launching.renderWords({ model: place.model, host: contained.host, port, flags });
  const intended = intend(options, { marker, line: describeCommand(command, words), contained: contained.containment });
  await prepareLog(machine, place.logPath, intended.n - 1);
  await shelf.write(bookWith(options.book, intended));
  onStarting(intended);
  const { setup, workFolder } = place;
  const { logPath, statusPath } = intended;
  const identity = await machine.start({
    ...{ setup, command: renderCommand(contained.command, words), env: values, workFolder, logPath, statusPath, marker },
  });
  const record = { ...intended, identity };
  const book = bookWith(options.book, record);
  await shelf.write(book);
  return { book, record };
}

interface Intended {
  readonly marker: string;
  readonly line: string;
  readonly contained: Containment | undefined;
}

function intend({ place, flags, port, env, book, clock }: BeginOptions, { marker, line, contained }: Intended): LaunchRecord {
  const n = book.launches + 1;
  return {
    ...{ n, marker, flags, env, line, port },
    ...(contained === undefined ? {} : { contained }),
    logPath: place.logPath,
    statusPath: join(place.stateFolder, `${place.server}.${n}.exit`),
    startedAt: clock.now(),
    answered: 0,
  };
}

function bookWith(book: ServerBook, current: LaunchRecord): ServerBook {
  return { ...book, launches: current.n, current, isPending: false };
}

/**
 * A launch has a log of its own, so that no line of another is taken for one of it. `.0` is what was there before the first.
 * Throws `server.not-launched` where it cannot be written: a server that cannot be watched is not started.
 */
export async function prepareLog(machine: Machine, logPath: string, n: number): Promise<void> {
  const [log, aside] = [logPath, `${logPath}.${n}`].map(quoteShell);
  const script = [
    `mkdir -p -- ${quoteShell(dirname(logPath))} || exit`,
    `if test -e ${log}; then test -f ${log} || { echo 'it is no file' >&2; exit 1; }`,
    // Where the answer is lost with the connection it runs again: then the log is the new, empty one, and the old one is aside.
    `if test -s ${log} || ! test -e ${aside}; then mv -f -- ${log} ${aside} || exit; fi; fi`,
    `: >>${log}`,
  ].join('\n');
  const result = await machine.run({ file: 'sh', args: ['-c', script], timeoutMs: PREPARE_MS });
  if (result.kind === 'ended' && result.code === 0) return;
  const because = result.kind === 'ended' ? (result.stderr.trim().split('\n').at(-1) ?? '') : result.kind;
  throw new AerieError('server.not-launched', `The log of the launch cannot be written: ${logPath} (${because}).`, {
    remedy: 'Name a file that can be written under log: in the run file, or leave it out. Nothing was started.',
  });
}

/** Two renames; a network disk that wakes up takes seconds. */
const PREPARE_MS = 60_000;
