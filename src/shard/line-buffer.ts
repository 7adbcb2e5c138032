/**
 * Bytes of lines, one after the other in memory that is used again: thousands of records a minute, each of some 50 KB, would else
 * be as many buffers that the garbage collector has to hear of before their memory is free.
 *
 * A line is `text` and `ids` in turn and then `end`, which gives its bytes. They stay until `reset`: whoever resets has no
 * use for the lines any more.
 */

/** Twenty records of 4,000 tokens: as many as a group commit gathers at 1,000 answers a second. */
const SLAB_BYTES = 1024 * 1024;
/** Kept over a reset; what a slow disk or a giant line had piled up beyond them is given back. */
const SLABS_KEPT = 4;
/** The most bytes of UTF-8 for one unit of a string. */
const MOST_BYTES_PER_UNIT = 3;

const [COMMA, OPENING, CLOSING, ZERO] = [0x2c, 0x5b, 0x5d, 0x30];
/** 2³¹ − 1 and its comma: no id is longer. */
const MOST_BYTES_PER_ID = 11;
/** `000` to `999`, one after the other: three digits at a time are twice as fast as one. */
const DIGITS = Buffer.from(Array.from({ length: 1000 }, (_, n) => String(n).padStart(3, '0')).join(''));

export class LineBuffer {
  #slabs: Buffer[] = [Buffer.allocUnsafeSlow(SLAB_BYTES)];
  #slab = this.#slabs[0] as Buffer;
  #nth = 0;
  #start = 0;
  #end = 0;

  /** As UTF-8. */
  text(text: string): void {
    if (this.#room < text.length * MOST_BYTES_PER_UNIT) this.#reserve(Buffer.byteLength(text));
    this.#end += this.#slab.write(text, this.#end);
  }

  /** As JSON, as `JSON.stringify` has it. */
  ids(ids: readonly number[]): void {
    this.#reserve(ids.length * MOST_BYTES_PER_ID + 2);
    const slab = this.#slab;
    let end = this.#end;
    slab[end++] = OPENING;
    for (let at = 0; at < ids.length; at++) {
      if (at > 0) slab[end++] = COMMA;
      end = writeId(slab, end, ids[at] as number);
    }
    slab[end++] = CLOSING;
    this.#end = end;
  }

  /** The line so far; the next one begins. */
  end(): Buffer {
    const line = this.#slab.subarray(this.#start, this.#end);
    this.#start = this.#end;
    return line;
  }

  /** The memory of all lines is used anew. */
  reset(): void {
    this.#slabs = this.#slabs.filter(({ length }) => length === SLAB_BYTES).slice(0, SLABS_KEPT);
    this.#use(0);
    this.#end = 0;
  }

  get #room(): number {
    return this.#slab.length - this.#end;
  }

  /** A line lies in one piece: where it does not fit, what there is of it moves to another slab. */
  #reserve(bytes: number): void {
    if (this.#room >= bytes) return;
    const begun = this.#slab.subarray(this.#start, this.#end);
    const needed = begun.length + bytes;
    const next = this.#nth + 1;
    const following = this.#slabs[next];
    // Half as much again, so that a line far longer than a slab does not move with each of its pieces.
    if (following === undefined || following.length < needed)
      this.#slabs.splice(next, 0, Buffer.allocUnsafeSlow(Math.max(SLAB_BYTES, Math.ceil(needed * 1.5))));
    this.#use(next);
    this.#end = begun.copy(this.#slab, 0);
  }

  #use(nth: number): void {
    this.#nth = nth;
    this.#slab = this.#slabs[nth] as Buffer;
    this.#start = 0;
  }
}

/** A whole number below 2³¹, as ids are; returns where it ends. */
function writeId(slab: Buffer, at: number, id: number): number {
  if (id < 1000) return writeHead(slab, at, id);
  const thousands = Math.trunc(id / 1000);
  const end = writeId(slab, at, thousands);
  writeThree(slab, end, id - thousands * 1000);
  return end + 3;
}

/** Up to three digits, without the zeros before them. */
function writeHead(slab: Buffer, at: number, digits: number): number {
  if (digits >= 100) {
    writeThree(slab, at, digits);
    return at + 3;
  }
  if (digits < 10) {
    slab[at] = ZERO + digits;
    return at + 1;
  }
  slab[at] = DIGITS[digits * 3 + 1] as number;
  slab[at + 1] = DIGITS[digits * 3 + 2] as number;
  return at + 2;
}

function writeThree(slab: Buffer, at: number, digits: number): void {
  slab[at] = DIGITS[digits * 3] as number;
  slab[at + 1] = DIGITS[digits * 3 + 1] as number;
  slab[at + 2] = DIGITS[digits * 3 + 2] as number;
}
