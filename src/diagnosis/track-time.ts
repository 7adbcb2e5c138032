/** When each line was written: by its own time, else by that of a line above it. Pure. */
import type { Sighting } from './account.ts';
import { readTime } from './log-time.ts';
import type { FoundLine } from './scan-lines.ts';

/** A traceback has no times of its own; the line that began it has. */
const LINES_ABOVE = 30;

export class TimeTrack {
  readonly #now: number | undefined;
  #at: number | undefined;
  #line = 0;

  constructor(now: number | undefined) {
    this.#now = now;
  }

  copy(): TimeTrack {
    const copy = new TimeTrack(this.#now);
    copy.#at = this.#at;
    copy.#line = this.#line;
    return copy;
  }

  see(found: FoundLine): Sighting {
    const text = found.text();
    let at = this.#read(text);
    // The lines between were not read; one of them may be nearer in time than the last one that was.
    if (at === undefined && found.line - this.#line > 1) {
      for (const above of found.before(LINES_ABOVE)) {
        at = this.#read(above);
        if (at !== undefined) break;
      }
    }
    if (at !== undefined) {
      this.#at = at;
      this.#line = found.line;
    }
    return { line: found.line, text, at: at ?? this.#at };
  }

  timeOf(text: string): number | undefined {
    return this.#read(text) ?? this.#at;
  }

  /** The last time that stands in the last lines, else the last that was read. */
  lastOf(tail: readonly { readonly text: string }[]): number | undefined {
    for (let back = tail.length - 1; back >= 0; back--) {
      const at = this.#read(tail[back]?.text ?? '');
      if (at !== undefined) return at;
    }
    return this.#at;
  }

  #read(text: string): number | undefined {
    return readTime(text, {
      ...(this.#at === undefined ? {} : { before: this.#at }),
      ...(this.#now === undefined ? {} : { now: this.#now }),
    });
  }
}
