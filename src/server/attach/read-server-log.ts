/**
 * Reads the log of a server on that Aerie did not start: a file, docker's or the journal's. Every line once, in memory that does not grow with it.
 * On failure: what docker or journalctl do not tell now reads as no news, and is asked for again the next time.
 */
import type { Account } from '../../diagnosis/account.ts';
import type { LoggedEngine } from '../../diagnosis/log-facts.ts';
import { LogReader } from '../../diagnosis/read-log.ts';
import type { Machine } from '../../machine/machine.ts';
import { LogFollower } from '../launch/follow-log.ts';
import { type LogSource, MOST_BYTES_A_LOOK } from '../launch/log-source.ts';
import { type DockerCursor, FROM_BEGINNING, takeDockerLines, withoutOverlap } from './docker-lines.ts';
import { takeJournalEntries } from './journal-lines.ts';
import { JsonFileLog } from './json-file-log.ts';
import type { ServerLog } from './server-log.ts';

type Asked = Pick<Machine, 'run' | 'readFile'>;

/** undefined: there is no log to be read. */
export async function openServerLog(machine: Asked, log: ServerLog, engine: LoggedEngine): Promise<LogSource | undefined> {
  switch (log.kind) {
    case 'none':
      return undefined;
    case 'file':
      return new LogFollower(machine, log.readPath, engine);
    case 'journal':
      return new CommandLog(journalReader(machine, log), engine);
    case 'docker': {
      const { id, logPath, logDriver } = log.container;
      // Docker looks through the whole file at every call; who may read it reads on where it stopped.
      const isReadable = logDriver === 'json-file' && logPath !== '' && (await machine.readFile(logPath, 0, 1)) !== undefined;
      return isReadable ? new JsonFileLog(machine, logPath, engine) : new CommandLog(dockerReader(machine, id), engine);
    }
  }
}

export interface Piece {
  readonly bytes: Uint8Array;
  /** There is more of it now. */
  readonly isCut: boolean;
}

class CommandLog implements LogSource {
  readonly #next: () => Promise<Piece>;
  readonly #reader: LogReader;
  #bytes = 0;

  constructor(next: () => Promise<Piece>, engine: LoggedEngine) {
    this.#next = next;
    this.#reader = new LogReader({ engine });
  }

  get bytes(): number {
    return this.#bytes;
  }

  async readOn(): Promise<boolean> {
    let wasEmpty = false;
    for (let read = 0; read < MOST_BYTES_A_LOOK; ) {
      const { bytes, isCut } = await this.#next();
      this.#reader.feed(bytes);
      this.#bytes += bytes.length;
      read += bytes.length;
      // A piece may hold nothing but what is known, once; a line that is longer than a piece has no end yet.
      if (!isCut || (bytes.length === 0 && wasEmpty)) return true;
      wasEmpty = bytes.length === 0;
    }
    return false;
  }

  account(): Account {
    return this.#reader.account();
  }
}

/** Of one call: below what a short command may print (4,000,000 characters). */
const PIECE_BYTES = 3_000_000;
/** Docker goes through its file from the beginning: 1 GB takes it some ten seconds. */
const PIECE_MS = 60_000;

/** Ends what is printed, so that a last line is whole or not, whoever takes a newline off the end on the way. */
const END = '.';

/** `sh -c SCRIPT sh SINCE CONTAINER`: both streams in the order of the log. */
const DOCKER_SCRIPT = `docker logs --timestamps --since "$1" "$2" 2>&1 | head -c ${PIECE_BYTES}; printf ${END}`;

/** What comes behind the cursor, a piece each time. */
export function dockerReader(
  machine: Pick<Machine, 'run'>,
  id: string,
  from: DockerCursor = FROM_BEGINNING,
): () => Promise<Piece> {
  let cursor = from;
  return async () => {
    const printed = await print(machine, DOCKER_SCRIPT, [cursor.since, id]);
    const isCut = Buffer.byteLength(printed) >= PIECE_BYTES;
    const taken = takeDockerLines(printed, cursor);
    // A second of more than a piece is passed without an overlap.
    cursor = isCut && taken.lines === 0 ? withoutOverlap(taken.cursor) : taken.cursor;
    return { bytes: taken.bytes, isCut };
  };
}

export const JOURNAL_WORDS = ['journalctl', '--quiet', '--no-pager', '--output=json', '--output-fields=MESSAGE'] as const;

const JOURNAL_SCRIPT = `${JOURNAL_WORDS.join(' ')} "$@" 2>/dev/null | head -c ${PIECE_BYTES}; printf ${END}`;

/** The entries of this start of a unit, as words for journalctl. */
export function entriesOf({ unit, isOfUser, invocation }: Extract<ServerLog, { kind: 'journal' }>): readonly string[] {
  const ofUnit = [`${isOfUser ? '--user-unit' : '--unit'}=${unit}`, '--boot'];
  return invocation === '' ? ofUnit : [`_SYSTEMD_INVOCATION_ID=${invocation}`];
}

export function journalReader(
  machine: Pick<Machine, 'run'>,
  log: Extract<ServerLog, { kind: 'journal' }>,
  from = '',
): () => Promise<Piece> {
  let cursor = from;
  return async () => {
    const after = cursor === '' ? [] : [`--after-cursor=${cursor}`];
    const printed = await print(machine, JOURNAL_SCRIPT, [...after, ...entriesOf(log)]);
    const taken = takeJournalEntries(printed, cursor);
    cursor = taken.cursor;
    return { bytes: taken.bytes, isCut: Buffer.byteLength(printed) >= PIECE_BYTES };
  };
}

async function print(machine: Pick<Machine, 'run'>, script: string, words: readonly string[]): Promise<string> {
  const result = await machine.run({ file: 'sh', args: ['-c', script, 'sh', ...words], timeoutMs: PIECE_MS });
  return result.kind === 'ended' && result.stdout.endsWith(END) ? result.stdout.slice(0, -END.length) : '';
}
