/**
 * A short piece of foreign text that is safe to print and to store: no control, format or private characters (they could
 * drive a terminal or reverse its direction), no half pairs, at most `most` characters. Pure; never throws.
 */
const UNSAFE = /[\p{C}\p{Zl}\p{Zp}]/gu;

export function excerptText(text: string, most: number): string {
  // One more than `most` is enough to know that something was cut; a pair that the cut halves becomes a space.
  const safe = text.slice(0, most + 1).replace(UNSAFE, ' ');
  if (text.length <= most) return safe;
  return `${safe.slice(0, most - 1).replace(/\p{Surrogate}$/u, ' ')}…`;
}

/** Of bytes: bad UTF-8 shows as U+FFFD here, and only here, because an excerpt is for reading. */
export function excerptBytes(bytes: Uint8Array, most: number): string {
  // 4 bytes is the longest character; one character more tells whether something was cut.
  return excerptText(new TextDecoder().decode(bytes.subarray(0, (most + 1) * 4)), most);
}
