/**
 * One log of several containers (docker compose, kubectl --prefix) → a reader for each. Pure; memory is that of the readers.
 * Lines that no carrier marks (bars, tracebacks) go to all: only one of them can read something into a bar of its own start. Lines of others are
 * passed on as empty ones, so that numbers stay those of the file.
 */
import type { Account } from './account.ts';
import { LogReader, type ReadOptions } from './read-log.ts';

/** `name  | ` and `[pod/name/container] `, in colour on a terminal. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
const CARRIER = /^(?:\u001b\[[0-9;]*m)*(?:([\w.-]+) +\| |\[(pod\/[^\]]+)\] )/;
/** Read before it is decided whether there are several. */
const LOOKED_AT = 2 ** 18;
/** A table that someone printed into a log is no set of containers. */
const MOST_CARRIERS = 16;

export interface CarriedAccount {
  /** '' where the log is that of one. */
  readonly carrier: string;
  readonly account: Account;
}

export class CarriedLog {
  readonly #options: ReadOptions;
  #head: Buffer | undefined = Buffer.alloc(0);
  #readers = new Map<string, LogReader>();
  /** The bytes of a line that was cut off. */
  #rest = '';
  #lines = 0;

  constructor(options: ReadOptions = {}) {
    this.#options = options;
  }

  feed(chunk: Uint8Array): void {
    if (this.#head === undefined) this.#pass(chunk);
    else {
      this.#head = Buffer.concat([this.#head, chunk]);
      if (this.#head.length >= LOOKED_AT) this.#decide();
    }
  }

  end(): CarriedAccount[] {
    if (this.#head !== undefined) this.#decide();
    if (this.#rest !== '') this.#passLine(this.#rest);
    const all = [...this.#readers].map(([carrier, reader]) => ({ carrier, account: reader.account() }));
    const known = all.filter(({ account }) => account.recognised > 0);
    return known.length === 0 ? all.slice(0, 1) : known;
  }

  #decide(): void {
    const head = this.#head ?? Buffer.alloc(0);
    this.#head = undefined;
    const names = new Set(
      head
        .toString('latin1')
        .split('\n')
        .flatMap((line) => carrierOf(line) ?? []),
    );
    const isSplit = names.size > 1 && names.size <= MOST_CARRIERS;
    for (const name of isSplit ? names : ['']) this.#readers.set(name, new LogReader(this.#options));
    this.#pass(head);
  }

  #pass(chunk: Uint8Array): void {
    const only = this.#readers.get('');
    if (only !== undefined) {
      only.feed(chunk);
      return;
    }
    const lines = (this.#rest + Buffer.from(chunk).toString('latin1')).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#passLine(`${line}\n`);
  }

  /** Bytes stay bytes on the way: one character each. */
  #passLine(line: string): void {
    const carrier = carrierOf(line);
    const bytes = Buffer.from(line, 'latin1');
    if (carrier !== undefined && !this.#readers.has(carrier) && this.#readers.size < MOST_CARRIERS) this.#join(carrier);
    this.#lines += 1;
    for (const [name, reader] of this.#readers) reader.feed(carrier === undefined || carrier === name ? bytes : NOTHING);
  }

  /** A container that came later: its lines are numbered by the file too. */
  #join(carrier: string): void {
    const reader = new LogReader(this.#options);
    reader.feed(Buffer.alloc(this.#lines, '\n'));
    this.#readers.set(carrier, reader);
  }
}

const NOTHING = Buffer.from('\n');

function carrierOf(line: string): string | undefined {
  const found = CARRIER.exec(line);
  return found?.[1] ?? found?.[2];
}
