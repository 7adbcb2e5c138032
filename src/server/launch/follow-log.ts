/**
 * Reads the log of a launch on, from where it stopped the last time: every byte once, whole, however long it grows.
 * On failure: a log that is not there yet, or was cut or moved away, reads as no news.
 */
import type { Account } from '../../diagnosis/account.ts';
import { LogReader } from '../../diagnosis/read-log.ts';
import type { LoggedEngine } from '../../diagnosis/log-facts.ts';
import type { Machine } from '../../machine/machine.ts';
import { type LogSource, MOST_BYTES_A_LOOK } from './log-source.ts';

/** One read of a catch-up; the reader goes through 126 MB a second. */
const CHUNK_BYTES = 4 * 2 ** 20;

export class LogFollower implements LogSource {
  readonly #machine: Pick<Machine, 'readFile'>;
  readonly #path: string;
  readonly #reader: LogReader;
  #offset = 0;

  constructor(machine: Pick<Machine, 'readFile'>, path: string, engine: LoggedEngine) {
    this.#machine = machine;
    this.#path = path;
    this.#reader = new LogReader({ engine });
  }

  get bytes(): number {
    return this.#offset;
  }

  /** Returns whether everything that is there has been read. */
  async readOn(): Promise<boolean> {
    for (let read = 0; read < MOST_BYTES_A_LOOK; ) {
      const found = await this.#machine.readFile(this.#path, this.#offset, CHUNK_BYTES);
      if (found === undefined || found.bytes.length === 0) return true;
      this.#reader.feed(found.bytes);
      this.#offset += found.bytes.length;
      read += found.bytes.length;
      if (this.#offset >= found.size) return true;
    }
    return false;
  }

  account(): Account {
    return this.#reader.account();
  }
}
