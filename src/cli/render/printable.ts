/**
 * What servers, files and models say, made safe for a terminal: it may show colours and line breaks, and nothing that moves
 * the cursor, changes the title or turns the direction of reading. Pure.
 */

/** Colours pass as they are; then every control character, the overrides of direction, and the two odd line ends. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const UNSAFE = /\u001b\[[\d;]*m|[\p{Cc}\u202a-\u202e\u2066-\u2069\p{Zl}\p{Zp}]/gu;

export function printable(text: string): string {
  return text.replaceAll(UNSAFE, (found) => {
    if (found === '\n' || found === '\t' || found.length > 1) return found;
    return `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`;
  });
}
