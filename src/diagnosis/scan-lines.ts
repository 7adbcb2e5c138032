/**
 * Bytes of a log → the lines that hold an anchor, in order, with what stands around them. Pure; memory is bounded by the
 * chunk and the longest line (at most 1 MiB of one line is kept).
 * Promises: chunks may be cut anywhere; a line is numbered by line feeds; each part between carriage returns is read on its own.
 */
import { type AnchorSet, CLASS_BITS } from './anchor-set.ts';

const LF = 10;
const CR = 13;
const ESC = 27;
/** Kept of what was read, for the lines before a line and for the tail. */
const LOOK_BACK = 16 * 1024;
const LONGEST_LINE = 2 ** 20;
/** A chunk of a file and what is kept before it; grows where a chunk or a line is larger. */
const STORE_BYTES = 2 ** 18;
/** Lines around one that a wrapped message may continue in: a message of 300 characters in 80 columns. */
const AROUND = 4;

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
const COLOURS = /\u001b\[[0-9;?]*[A-Za-z]|\u001b\][^\u0007]*\u0007/g;

/** One part of a log line that holds an anchor. Valid only while it is being told. */
export class FoundLine {
  readonly line: number;
  readonly anchors: readonly number[];
  readonly #buffer: Buffer;
  readonly #start: number;
  readonly #end: number;

  constructor(buffer: Buffer, pending: Pending) {
    this.#buffer = buffer;
    this.line = pending.line;
    this.anchors = pending.anchors;
    this.#start = pending.start;
    this.#end = pending.end;
  }

  text(): string {
    return readable(this.#buffer, this.#start, this.#end);
  }

  get bytes(): number {
    return this.#end - this.#start + 1;
  }

  /** The same as single bytes: enough for figures, and much faster. */
  latin(): string {
    return this.#buffer.toString('latin1', this.#start, this.#end);
  }

  /** The lines before this one, nearest first. */
  before(count: number): string[] {
    const lines: string[] = [];
    let end = this.#start - 1;
    while (lines.length < count && end > 0) {
      if (end > 0 && this.#buffer[end] === LF && this.#buffer[end - 1] === CR) end -= 1;
      const start = startOfLine(this.#buffer, end);
      lines.push(readable(this.#buffer, start, end));
      end = start - 1;
    }
    return lines;
  }

  after(count = AROUND): string[] {
    const lines: string[] = [];
    let start = this.#end;
    while (lines.length < count && start < this.#buffer.length) {
      start += this.#buffer[start] === CR && this.#buffer[start + 1] === LF ? 2 : 1;
      const end = endOfLine(this.#buffer, start);
      if (end > start) lines.push(readable(this.#buffer, start, end));
      if (end >= this.#buffer.length) break;
      start = end;
    }
    return lines;
  }
}

interface Pending {
  readonly line: number;
  readonly part: number;
  start: number;
  end: number;
  readonly anchors: readonly number[];
}

export interface Rest {
  /** The number of the last line; the line before the first one where nothing was fed. */
  readonly lines: number;
  readonly bytes: number;
  readonly tail: readonly { readonly line: number; readonly text: string }[];
  readonly found: readonly FoundLine[];
}

export class LineScan {
  readonly #anchors: AnchorSet;
  readonly #onLine: (found: FoundLine) => void;
  #store: Buffer = Buffer.allocUnsafe(STORE_BYTES);
  /** The part of the store that holds text. */
  #buffer: Buffer = this.#store.subarray(0, 0);
  /** Where in the buffer scanning goes on. */
  #at = 0;
  #lineStart = 0;
  #line: number;
  #part = 0;
  #state = 0;
  #inEscape = false;
  #hits: number[] = [];
  #pending: Pending[] = [];
  #bytes = 0;

  constructor(anchors: AnchorSet, onLine: (found: FoundLine) => void, firstLine = 1) {
    this.#anchors = anchors;
    this.#onLine = onLine;
    this.#line = firstLine;
  }

  feed(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    this.#append(chunk);
    this.#scan();
    this.#deliver();
    this.#keepTail();
  }

  /**
   * What stands at the end of what was fed, as if the log ended here: the number of its last line, the last lines (oldest first),
   * and lines with an anchor that were not told yet, valid until the next chunk. Changes nothing: more may be fed.
   */
  rest(): Rest {
    const open = this.#hits.length === 0 ? [] : [this.#pendingTo(this.#buffer.length)];
    const found = [...this.#pending, ...open].map((pending) => new FoundLine(this.#buffer, pending));
    const texts = readable(this.#buffer, this.#tailStart(), this.#buffer.length).split('\n');
    const isClosed = texts.at(-1) === '';
    const lines = this.#line - (isClosed ? 1 : 0);
    if (isClosed) texts.pop();
    const tail = texts.map((text, at) => ({ line: lines - texts.length + 1 + at, text }));
    return { lines, bytes: this.#bytes, tail, found };
  }

  /** The same however the bytes were cut: what the store holds more is older. */
  #tailStart(): number {
    const from = this.#buffer.length - LOOK_BACK;
    if (from <= 0) return 0;
    const start = endOfLine(this.#buffer, from) + 1;
    return start < this.#buffer.length ? start : from;
  }

  /** Into one store that is used again and again: a log of gigabytes leaves no garbage of its size. */
  #append(chunk: Uint8Array): void {
    const kept = this.#buffer.length;
    const needed = kept + chunk.length;
    if (this.#store.length < needed) {
      const larger = Buffer.allocUnsafe(Math.max(needed, 2 * this.#store.length));
      this.#buffer.copy(larger);
      this.#store = larger;
    }
    this.#store.set(chunk, kept);
    this.#buffer = this.#store.subarray(0, needed);
  }

  #scan(): void {
    const buffer = this.#buffer;
    let at = this.#at;
    let [lf, cr, esc] = [nextOf(buffer, LF, at), nextOf(buffer, CR, at), nextOf(buffer, ESC, at)];
    for (;;) {
      const stop = Math.min(lf, cr);
      if (esc < stop || this.#inEscape) {
        this.#walkColours(at, stop);
        esc = nextOf(buffer, ESC, stop);
      } else this.#walk(at, stop);
      if (stop === buffer.length) break;
      this.#inEscape = false;
      this.#endPart(stop);
      at = stop + 1;
      this.#lineStart = at;
      if (stop === lf) {
        this.#line += 1;
        lf = nextOf(buffer, LF, at);
      } else cr = nextOf(buffer, CR, at);
    }
    this.#at = buffer.length;
  }

  /** The loop that all time is spent in: nothing but the look-up. */
  #walk(from: number, to: number): void {
    const buffer = this.#buffer;
    const { next, classOf, firstFound } = this.#anchors;
    let state = this.#state;
    for (let at = from; at < to; at++) {
      state = next[(state << CLASS_BITS) | (classOf[buffer[at] as number] as number)] as number;
      if (state >= firstFound) this.#hit(state);
    }
    this.#state = state;
  }

  /** The same, past the colours of a terminal: one begins with ESC and ends at its letter; `[` only follows the ESC. */
  #walkColours(from: number, to: number): void {
    let at = from;
    while (at < to) {
      const byte = this.#buffer[at] as number;
      if (!this.#inEscape && byte !== ESC) {
        this.#walk(at, at + 1);
      } else this.#inEscape = byte === ESC || byte < 64 || byte === 91;
      at += 1;
    }
  }

  #hit(state: number): void {
    if (this.#hits.at(-1) !== state) this.#hits.push(state);
  }

  #endPart(end: number): void {
    const start = this.#lineStart;
    if (this.#hits.length > 0) {
      this.#pending.push(this.#pendingTo(end));
      this.#hits = [];
    }
    if (end > start) this.#part += 1;
    const oldest = this.#pending[0];
    if (oldest !== undefined && this.#part - oldest.part > AROUND) this.#deliver();
  }

  /** The part that is being read, with what was found in it. */
  #pendingTo(end: number): Pending {
    return { line: this.#line, part: this.#part, start: this.#lineStart, end, anchors: this.#anchorsOf(this.#hits) };
  }

  #anchorsOf(states: readonly number[]): readonly number[] {
    const [only] = states;
    if (only !== undefined && states.length === 1) return this.#anchors.found(only);
    return [...new Set(states.flatMap((state) => this.#anchors.found(state)))];
  }

  /** Tells the lines whose following lines are there, or that would leave the buffer. */
  #deliver(): void {
    while (this.#pending.length > 0) {
      const first = this.#pending[0] as Pending;
      const isOld = this.#buffer.length - first.end > LOOK_BACK / 2;
      if (!isOld && this.#part - first.part <= AROUND) return;
      this.#pending.shift();
      this.#onLine(new FoundLine(this.#buffer, first));
    }
  }

  #keepTail(): void {
    const needed = Math.min(this.#lineStart, this.#pending[0]?.start ?? this.#lineStart);
    let from = Math.max(0, Math.min(this.#buffer.length - LOOK_BACK, needed - LOOK_BACK));
    from = Math.max(from, this.#buffer.length - LONGEST_LINE);
    // Begin at a line, so that the tail's first line is whole.
    if (from > 0) from = Math.min(endOfLine(this.#buffer, from) + 1, this.#buffer.length);
    if (from > this.#lineStart) from = Math.max(0, this.#buffer.length - LONGEST_LINE);
    const kept = this.#buffer.length - from;
    this.#store.copyWithin(0, from, this.#buffer.length);
    this.#buffer = this.#store.subarray(0, kept);
    this.#at -= from;
    this.#lineStart = Math.max(0, this.#lineStart - from);
    for (const pending of this.#pending) {
      pending.start = Math.max(0, pending.start - from);
      pending.end = Math.max(0, pending.end - from);
    }
  }
}

/** As a person reads it: without the colours of a terminal. */
function readable(buffer: Buffer, start: number, end: number): string {
  const text = buffer.toString('utf8', start, end);
  return text.includes('\u001b') ? text.replace(COLOURS, '') : text;
}

/** Where a byte stands next; the end where it does not. */
function nextOf(buffer: Buffer, byte: number, from: number): number {
  const at = buffer.indexOf(byte, from);
  return at === -1 ? buffer.length : at;
}

function startOfLine(buffer: Buffer, end: number): number {
  let start = end;
  while (start > 0 && buffer[start - 1] !== LF && buffer[start - 1] !== CR) start -= 1;
  return start;
}

function endOfLine(buffer: Buffer, start: number): number {
  let end = start;
  while (end < buffer.length && buffer[end] !== LF && buffer[end] !== CR) end += 1;
  return end;
}
