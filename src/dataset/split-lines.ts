/**
 * Bytes in any chunks → lines, split on byte 0x0A before anything is decoded, so that bad UTF-8 stays visible
 * (Node's readline would turn it into U+FFFD).
 *
 * Promises: every line of the stream is reported once, with its 1-based number; the result does not depend on how the
 * stream was chunked; each byte is looked at once and copied at most a few times; never more than `mostLineBytes` of one
 * line is held (twice that while its buffer grows). CRLF endings and a byte order mark at the very start are taken off.
 * `bytes` may be a view into a chunk: a source must not reuse its chunks.
 * On failure: the splitter itself cannot fail; what the chunks throw passes through.
 */

/** A line above this is not held: ten times the longest real conversations, and far below V8's string limit of 512 Mi characters. */
export const MOST_LINE_BYTES = 64 * 2 ** 20;
/** What is kept of a line that is too long: enough for an excerpt of 200 characters of 4 bytes each. */
const KEPT_OF_LONG_LINE_BYTES = 800;
/** First buffer for a line that crosses chunks; doubled as needed. */
const FIRST_BUFFER_BYTES = 4096;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

interface Place {
  /** Counted from 1; blank and too long lines count. */
  readonly number: number;
  /** Without the line's ending and the mark at the start of the file; of a too long line, as stored. */
  readonly byteLength: number;
}

export type Line =
  | (Place & { readonly kind: 'text'; readonly bytes: Uint8Array })
  /** Nothing but spaces and tabs: a row of the source, but no content. */
  | (Place & { readonly kind: 'blank' })
  | (Place & { readonly kind: 'too-long'; readonly start: Uint8Array });

export interface LineSplitter {
  /** The lines that this chunk finished. */
  push(chunk: Uint8Array): readonly Line[];
  /** The last line, where the stream does not end in a line feed. Call once. */
  end(): readonly Line[];
  /** How many bytes were moved so far: what shows that the work is linear. */
  readonly copiedBytes: number;
}

/** One group of lines per chunk that finished any: a generator step per line would cost more than the splitting. */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  mostLineBytes: number = MOST_LINE_BYTES,
): AsyncGenerator<readonly Line[], void, undefined> {
  const splitter = createLineSplitter(mostLineBytes);
  for await (const chunk of chunks) {
    const lines = splitter.push(chunk);
    if (lines.length > 0) yield lines;
  }
  const last = splitter.end();
  if (last.length > 0) yield last;
}

export function createLineSplitter(mostLineBytes: number = MOST_LINE_BYTES): LineSplitter {
  let number = 0;
  let copiedBytes = 0;
  /** The unfinished line: its first bytes lie in `held`, and `seen` bytes of it have passed. */
  let held = new Uint8Array(0);
  let heldBytes = 0;
  let seen = 0;

  const hold = (part: Uint8Array): void => {
    const room = (seen + part.length > mostLineBytes ? KEPT_OF_LONG_LINE_BYTES : mostLineBytes) - heldBytes;
    seen += part.length;
    if (seen > mostLineBytes && heldBytes > KEPT_OF_LONG_LINE_BYTES) {
      held = held.slice(0, KEPT_OF_LONG_LINE_BYTES);
      heldBytes = KEPT_OF_LONG_LINE_BYTES;
    }
    const kept = room <= 0 ? part.subarray(0, 0) : part.subarray(0, room);
    if (heldBytes + kept.length > held.length) {
      const doubled = Math.min(Math.max(FIRST_BUFFER_BYTES, held.length * 2), mostLineBytes);
      const larger = new Uint8Array(Math.max(doubled, heldBytes + kept.length));
      larger.set(held.subarray(0, heldBytes));
      copiedBytes += heldBytes;
      held = larger;
    }
    held.set(kept, heldBytes);
    heldBytes += kept.length;
    copiedBytes += kept.length;
  };

  /** `last` is the end of the line: alone the whole line in most cases, which is then not copied. */
  const finish = (last: Uint8Array): Line => {
    let bytes = last;
    if (seen > 0 || last.length > mostLineBytes) {
      hold(last);
      bytes = held.subarray(0, heldBytes);
    }
    number += 1;
    const storedBytes = Math.max(seen, last.length);
    // The buffer goes away with the line.
    held = new Uint8Array(0);
    heldBytes = 0;
    seen = 0;
    return storedBytes > mostLineBytes
      ? { kind: 'too-long', number, byteLength: storedBytes, start: bytes }
      : toLine(number, bytes);
  };

  return {
    push: (chunk) => {
      const lines: Line[] = [];
      let from = 0;
      for (;;) {
        const at = chunk.indexOf(LINE_FEED, from);
        if (at === -1) break;
        lines.push(finish(chunk.subarray(from, at)));
        from = at + 1;
      }
      if (from < chunk.length) hold(chunk.subarray(from));
      return lines;
    },
    end: () => (seen > 0 ? [finish(new Uint8Array(0))] : []),
    get copiedBytes() {
      return copiedBytes;
    },
  };
}

function toLine(number: number, stored: Uint8Array): Line {
  const hasMark = number === 1 && stored[0] === 0xef && stored[1] === 0xbb && stored[2] === 0xbf;
  const end = stored[stored.length - 1] === CARRIAGE_RETURN ? stored.length - 1 : stored.length;
  const bytes = stored.subarray(hasMark ? 3 : 0, end);
  const place = { number, byteLength: bytes.length };
  return bytes.every((byte) => byte === 0x20 || byte === 0x09) ? { kind: 'blank', ...place } : { kind: 'text', ...place, bytes };
}
