/** Which requests the engines have and have not answered, by their journal: the proof that something was in flight. */
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs';
import type { JournalLine } from '../support/read-journal.ts';

export class OpenRequests {
  readonly #journal: string;
  readonly #open = new Map<number, Set<number>>();
  #offset = 0;
  #torn = '';
  /** Of the journal, so far. */
  lines = 0;

  constructor(journal: string) {
    this.#journal = journal;
  }

  /** Reads what has come since the last look. */
  look(): void {
    const lines = (this.#torn + this.#readOn()).split('\n');
    this.#torn = lines.pop() ?? '';
    this.lines += lines.length;
    for (const line of lines) {
      const { event, pid, request } = JSON.parse(line) as JournalLine;
      const open = this.#open.get(pid) ?? new Set();
      this.#open.set(pid, open);
      if (event === 'received') open.add(request);
      else open.delete(request);
    }
  }

  /** In these processes, at the last look. */
  of(pids: readonly number[]): number {
    return pids.reduce((sum, pid) => sum + (this.#open.get(pid)?.size ?? 0), 0);
  }

  #readOn(): string {
    if (!existsSync(this.#journal)) return '';
    const bytes = Buffer.alloc(statSync(this.#journal).size - this.#offset);
    const file = openSync(this.#journal, 'r');
    const read = readSync(file, bytes, 0, bytes.length, this.#offset);
    closeSync(file);
    this.#offset += read;
    return bytes.toString('latin1', 0, read); // pids and numbers are ASCII
  }
}
