/**
 * The log of a container as docker's json-file driver keeps it, for whoever may read its folder: `ID-json.log`, and the files before it
 * as `.1`, `.2` … where docker turns them over. Every entry once.
 */
import type { Account } from '../../diagnosis/account.ts';
import type { LoggedEngine } from '../../diagnosis/log-facts.ts';
import { LogReader } from '../../diagnosis/read-log.ts';
import type { Machine } from '../../machine/machine.ts';
import { type LogSource, MOST_BYTES_A_LOOK } from '../launch/log-source.ts';
import { readJsonEntry } from './docker-lines.ts';

const CHUNK_BYTES = 4 * 2 ** 20;
/** `max-file` of the driver is a handful; a folder full of numbers is somebody's joke. */
const MOST_FILES = 100;

export class JsonFileLog implements LogSource {
  readonly #machine: Pick<Machine, 'readFile'>;
  readonly #path: string;
  readonly #reader: LogReader;
  #bytes = 0;
  /** In the file that is read now. */
  #offset = 0;
  #rest = Buffer.alloc(0);
  /** Files that come before the newest, the oldest first; undefined = not looked for. */
  #earlier: string[] | undefined;

  constructor(machine: Pick<Machine, 'readFile'>, path: string, engine: LoggedEngine) {
    this.#machine = machine;
    this.#path = path;
    this.#reader = new LogReader({ engine });
  }

  get bytes(): number {
    return this.#bytes;
  }

  async readOn(): Promise<boolean> {
    this.#earlier ??= await this.#findEarlier();
    for (const limit = this.#bytes + MOST_BYTES_A_LOOK; this.#bytes < limit; ) {
      const [before] = this.#earlier;
      const found = await this.#machine.readFile(before ?? this.#path, this.#offset, CHUNK_BYTES);
      if (found !== undefined && found.size < this.#offset && before === undefined) {
        // It was turned over: what was not read of it is now the file before.
        this.#earlier = [`${this.#path}.1`];
        continue;
      }
      if (found !== undefined && found.bytes.length > 0) {
        this.#take(found.bytes);
        continue;
      }
      if (before === undefined) return true;
      this.#earlier.shift();
      this.#offset = 0;
      this.#rest = Buffer.alloc(0);
    }
    return false;
  }

  account(): Account {
    return this.#reader.account();
  }

  async #findEarlier(): Promise<string[]> {
    const found: string[] = [];
    for (let n = 1; n <= MOST_FILES; n++) {
      const path = `${this.#path}.${n}`;
      if ((await this.#machine.readFile(path, 0, 1)) === undefined) break;
      found.unshift(path);
    }
    return found;
  }

  #take(bytes: Uint8Array): void {
    this.#offset += bytes.length;
    this.#bytes += bytes.length;
    const all = Buffer.concat([this.#rest, bytes]);
    const end = all.lastIndexOf(0x0a) + 1;
    this.#rest = Buffer.from(all.subarray(end));
    const lines = all.subarray(0, end).toString('utf8').split('\n');
    this.#reader.feed(Buffer.from(lines.map(readJsonEntry).join('')));
  }
}
