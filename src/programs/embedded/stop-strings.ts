/**
 * Watches an answer for stop strings while it grows. Works on bytes, so a stop string is found wherever the token
 * boundaries lie, and keeps only as many bytes as the longest stop string needs.
 */
export class StopStrings {
  readonly #stops: readonly { readonly text: string; readonly bytes: Buffer }[];
  readonly #longest: number;
  #tail: Buffer = Buffer.alloc(0);

  constructor(texts: readonly string[]) {
    this.#stops = texts.map((text) => ({ text, bytes: Buffer.from(text, 'utf8') }));
    this.#longest = Math.max(0, ...this.#stops.map((stop) => stop.bytes.length));
  }

  /** The stop string that these bytes complete (the one that begins first), or undefined. */
  push(bytes: Uint8Array): string | undefined {
    if (this.#stops.length === 0) return undefined;
    const seen = Buffer.concat([this.#tail, bytes]);
    const hits = this.#stops.map(({ text, bytes: stop }) => ({ text, at: seen.indexOf(stop) })).filter(({ at }) => at >= 0);
    hits.sort((a, b) => a.at - b.at);
    this.#tail = seen.subarray(Math.max(0, seen.length - this.#longest + 1));
    return hits[0]?.text;
  }
}
