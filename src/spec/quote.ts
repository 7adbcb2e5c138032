/**
 * Words from a file, made safe and short enough for one line of a terminal. Pure.
 * Promises: one line, no control or direction-changing character gets through, whatever the file holds.
 */

/** Long enough for any path or name that is worth reading, short enough to leave the sentence around it readable. */
const LONGEST = 60;

/** A value as it is named in a sentence: `"abc"`, `12`, `a list`, `nothing`. */
export function quoteValue(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (typeof value === 'string') return quoteText(value);
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return Array.isArray(value) ? 'a list' : 'a map';
}

/** Text in double quotes with everything that a terminal could act on written as an escape. */
export function quoteText(text: string): string {
  const letters = Array.from(text.slice(0, 4 * LONGEST));
  const cut = letters.length > LONGEST || text.length > 4 * LONGEST;
  return escapeText(`${JSON.stringify(letters.slice(0, LONGEST).join(''))}${cut ? '…' : ''}`);
}

/** Controls, line separators, format characters (bidi overrides among them) and lone surrogates as \u escapes. */
export function escapeText(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu, (letter) =>
    Array.from({ length: letter.length }, (_, i) => `\\u${letter.charCodeAt(i).toString(16).padStart(4, '0')}`).join(''),
  );
}
