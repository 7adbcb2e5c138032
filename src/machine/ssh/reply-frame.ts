/**
 * What came back on stdout of a script behind ssh: anything a login shell prints, `NONCE\n`, the script's bytes as they are,
 * `\nNONCE STATUS\n`. Fed piece by piece, wherever the pieces are cut. Keeps `most` bytes of the script; what comes after is
 * dropped, and the end is found all the same.
 */
export class ReplyFrame {
  readonly #begin: Buffer;
  readonly #end: Buffer;
  readonly #most: number;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  /** Not yet sorted: before the beginning, or what may be the first part of an end. */
  #rest: Buffer = Buffer.alloc(0);
  #hasBegun = false;
  #code: number | undefined;

  constructor(nonce: string, most: number) {
    this.#begin = Buffer.from(`${nonce}\n`);
    this.#end = Buffer.from(`\n${nonce} `);
    this.#most = most;
  }

  /** The script was read whole, and runs. */
  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  /** The script's exit status, once it has ended. */
  get code(): number | undefined {
    return this.#code;
  }

  get stdout(): Uint8Array {
    return Buffer.concat(this.#kept);
  }

  push(piece: Uint8Array): void {
    if (this.#code !== undefined) return;
    this.#rest = this.#rest.length === 0 ? Buffer.from(piece) : Buffer.concat([this.#rest, piece]);
    if (!this.#hasBegun) this.#findBegin();
    if (this.#hasBegun) this.#findEnd();
  }

  #findBegin(): void {
    const at = this.#rest.indexOf(this.#begin);
    this.#hasBegun = at !== -1;
    this.#rest = this.#hasBegun ? this.#rest.subarray(at + this.#begin.length) : lastOf(this.#rest, this.#begin.length - 1);
  }

  #findEnd(): void {
    const at = this.#rest.indexOf(this.#end);
    if (at === -1) {
      const waits = lastOf(this.#rest, this.#end.length - 1);
      this.#keep(this.#rest.subarray(0, this.#rest.length - waits.length));
      this.#rest = waits;
      return;
    }
    this.#keep(this.#rest.subarray(0, at));
    this.#rest = this.#rest.subarray(at);
    const status = this.#rest.toString('latin1', this.#end.length);
    if (status.includes('\n')) this.#code = Number.parseInt(status, 10);
  }

  #keep(bytes: Buffer): void {
    const kept = bytes.subarray(0, this.#most - this.#keptBytes);
    if (kept.length === 0) return;
    this.#keptBytes += kept.length;
    this.#kept.push(kept);
  }
}

function lastOf(bytes: Buffer, count: number): Buffer {
  return bytes.subarray(Math.max(0, bytes.length - count));
}
