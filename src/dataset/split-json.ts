/**
 * The bytes of one JSON list, in any chunks → the text of each of its entries, split before anything is parsed. The list is
 * the whole file, or stands under `data` or `rows` of the object that is the whole file.
 *
 * Promises: one entry is held at a time, never more than `mostBytes` of it; each byte is looked at once; what stands between
 * two commas is one entry, whatever it is (the parser refuses it); the result does not depend on how the text was chunked.
 * On failure: `end()` says what is wrong with the file as a whole: cut, something behind the list, no list at all.
 */
import { type Line, MOST_LINE_BYTES } from './split-lines.ts';

/** What is kept of an entry that is too long, for its excerpt. */
const KEPT_OF_LONG_ENTRY_BYTES = 800;
const LIST_KEYS: readonly string[] = ['data', 'rows'];
/** Of a key before the list: longer ones are none of ours. */
const MOST_KEY_BYTES = 16;

export type JsonTrouble = 'empty' | 'cut' | 'no-list' | 'more-behind';

/** Where the next byte lies: before the outermost bracket, around the list, in it, behind it, behind everything. */
type Place = 'before' | 'around' | 'list' | 'behind-list' | 'behind';

export class JsonSplitter {
  #place: Place = 'before';
  #trouble: JsonTrouble | undefined;
  /** Brackets open at this moment, and how many are where the list's entries stand. */
  #depth = 0;
  #listDepth = 0;
  #isInString = false;
  #isEscaped = false;
  /** The last string among the keys of the outermost object. */
  #key = '';
  #hasList = false;
  readonly #entry: HeldEntry;

  constructor(mostBytes: number = MOST_LINE_BYTES) {
    this.#entry = new HeldEntry(mostBytes);
  }

  /** Nothing that follows can make the file a list of rows. */
  get isHopeless(): boolean {
    return this.#trouble !== undefined;
  }

  push(chunk: Uint8Array): readonly Line[] {
    const lines: Line[] = [];
    let from = 0;
    for (let at = 0; at < chunk.length && this.#trouble === undefined; at += 1) {
      const byte = chunk[at] as number;
      if (this.#isInString || byte === QUOTE) this.#passString(byte);
      else if (this.#place !== 'list') {
        if (this.#passOutside(byte)) from = at + 1;
      } else if (this.#endsEntry(byte)) {
        this.#entry.hold(chunk.subarray(from, at));
        const line = this.#entry.finish(byte !== COMMA);
        if (line !== undefined) lines.push(line);
        from = at + 1;
      }
    }
    if (this.#place === 'list') this.#entry.hold(chunk.subarray(from));
    return lines;
  }

  /** undefined = the file was whole. */
  end(): JsonTrouble | undefined {
    if (this.#trouble !== undefined) return this.#trouble;
    if (this.#place === 'before') return 'empty';
    if (this.#place !== 'behind') return 'cut';
    return this.#hasList ? undefined : 'no-list';
  }

  #passString(byte: number): void {
    if (!this.#isInString) {
      if (this.#place === 'before' || this.#place === 'behind')
        this.#trouble = this.#place === 'before' ? 'no-list' : 'more-behind';
      this.#isInString = true;
      if (this.#isKeyPlace()) this.#key = '';
    } else if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === BACKSLASH) this.#isEscaped = true;
    else if (byte === QUOTE) this.#isInString = false;
    else if (this.#isKeyPlace() && this.#key.length < MOST_KEY_BYTES) this.#key += String.fromCharCode(byte);
  }

  #isKeyPlace(): boolean {
    return this.#place === 'around' && this.#depth === 1;
  }

  /** A byte of the list that is in no string: does it end an entry? */
  #endsEntry(byte: number): boolean {
    if (byte === OPEN_LIST || byte === OPEN_OBJECT) this.#depth += 1;
    else if (byte === COMMA) return this.#depth === this.#listDepth;
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
      this.#depth -= 1;
      if (this.#depth >= this.#listDepth) return false;
      this.#place = this.#depth === 0 ? 'behind' : 'behind-list';
      return true;
    }
    return false;
  }

  /** A byte outside the list that is in no string; true where the list begins. */
  #passOutside(byte: number): boolean {
    if (this.#place === 'before') return this.#passFirst(byte);
    if (this.#place === 'behind') {
      if (!isSpace(byte)) this.#trouble = this.#hasList ? 'more-behind' : 'no-list';
    } else if (byte === OPEN_LIST && this.#isKeyPlace() && LIST_KEYS.includes(this.#key)) {
      return this.#begin(2);
    } else if (byte === OPEN_LIST || byte === OPEN_OBJECT) this.#depth += 1;
    else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) {
      this.#depth -= 1;
      if (this.#depth === 0) this.#place = 'behind';
    } else if (byte === COMMA && this.#isKeyPlace()) this.#key = '';
    return false;
  }

  #passFirst(byte: number): boolean {
    if (isSpace(byte) || BYTE_ORDER_MARK.includes(byte)) return false;
    if (byte === OPEN_LIST) return this.#begin(1);
    if (byte === OPEN_OBJECT) {
      this.#depth = 1;
      this.#place = 'around';
    } else this.#trouble = 'no-list';
    return false;
  }

  #begin(depth: number): true {
    this.#depth = depth;
    this.#listDepth = depth;
    this.#place = 'list';
    this.#hasList = true;
    return true;
  }
}

const BYTE_ORDER_MARK: readonly number[] = [0xef, 0xbb, 0xbf];
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** The entry that is being read: views of its chunks until it is whole, so that its bytes are copied once. */
class HeldEntry {
  readonly #most: number;
  #parts: Uint8Array[] = [];
  #seen = 0;
  #number = 0;

  constructor(most: number) {
    this.#most = most;
  }

  hold(part: Uint8Array): void {
    const isTooLong = this.#seen > this.#most;
    this.#seen += part.length;
    if (isTooLong || part.length === 0) return;
    if (this.#seen <= this.#most) {
      this.#parts.push(part);
      return;
    }
    this.#parts.push(part.subarray(0, KEPT_OF_LONG_ENTRY_BYTES));
    this.#parts = [joinBytes(this.#parts).slice(0, KEPT_OF_LONG_ENTRY_BYTES)];
  }

  /** undefined: an empty list has no entry. */
  finish(isLast: boolean): Line | undefined {
    const bytes = joinBytes(this.#parts);
    const byteLength = this.#seen;
    this.#parts = [];
    this.#seen = 0;
    if (isLast && this.#number === 0 && bytes.every(isSpace)) return undefined;
    this.#number += 1;
    const place = { number: this.#number, byteLength };
    return byteLength > this.#most ? { kind: 'too-long', ...place, start: bytes } : { kind: 'text', ...place, bytes };
  }
}

function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  const [only = new Uint8Array(0)] = parts;
  return parts.length <= 1 ? only : Buffer.concat(parts);
}
