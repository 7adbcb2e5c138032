/**
 * Reads the log of a launch on, from where it stopped the last time: every byte once, whole, however long it grows.
 * On failure: a log that is not there yet, or was cut or moved away, reads as no news.
 */
import type { Account } from '../../diagnosis/account.ts';
import type { LoggedEngine } from '../../diagnosis/log-facts.ts';
import { LogReader } from '../../diagnosis/read-log.ts';
import type { Machine } from '../../machine/machine.ts';
import { type LogSource, MOST_BYTES_A_LOOK } from './log-source.ts';
import type { LogMirror } from './mirror-log.ts';

/** One read of a catch-up; the reader goes through 126 MB a second. */
const CHUNK_BYTES = 4 * 2 ** 20;

export class LogFollower implements LogSource {
  readonly #machine: Pick<Machine, 'readFile'>;
  readonly #path: string;
  readonly #reader: LogReader;
  readonly #mirror: LogMirror | undefined;
  #offset = 0;
  #turn: Promise<unknown> = Promise.resolve();

  /** `mirror`: what is read is kept there too. */
  constructor(machine: Pick<Machine, 'readFile'>, path: string, engine: LoggedEngine, mirror?: LogMirror) {
    this.#machine = machine;
    this.#path = path;
    this.#reader = new LogReader({ engine });
    this.#mirror = mirror;
  }

  get bytes(): number {
    return this.#offset;
  }

  /** Returns whether everything that is there has been read. */
  readOn(): Promise<boolean> {
    // One at a time, whoever asks: two reads from one offset would feed the same bytes twice.
    const turn = this.#turn.then(() => this.#readOn());
    this.#turn = turn.catch(() => undefined);
    return turn;
  }

  async #readOn(): Promise<boolean> {
    for (let read = 0; read < MOST_BYTES_A_LOOK; ) {
      const found = await this.#machine.readFile(this.#path, this.#offset, CHUNK_BYTES);
      if (found === undefined) return true;
      const offset = this.#offset;
      this.#reader.feed(found.bytes);
      this.#offset += found.bytes.length;
      await this.#mirror?.take({ offset, ...found });
      if (found.bytes.length === 0) return true;
      read += found.bytes.length;
      if (this.#offset >= found.size) return true;
    }
    return false;
  }

  account(): Account {
    return this.#reader.account();
  }
}
