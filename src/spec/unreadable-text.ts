/**
 * Texts that are not given to the YAML parser at all: binary junk, whole data sets, and nesting that would exhaust the
 * stack (deep enough, it ends the process inside the parser instead of throwing). Pure.
 */
import { formatBytes } from '../base/units.ts';
import type { Problem } from './problem.ts';

/** A run file is a page or two of text: 256 KiB hold some thousand partitions. */
const MOST_CHARACTERS = 256 * 1024;

/** The schema is five levels deep, extra-body may add some; the parser's stack holds 800. */
const DEEPEST = 64;

/** Columns of indentation and dashes at the start of a line: 64 levels of up to 8 columns. */
const WIDEST_INDENT = 512;

/** Why the text is not read, and where; undefined = give it to the parser. */
export function findUnreadable(text: string): Problem | undefined {
  if (text.length > MOST_CHARACTERS)
    return problem(0, `the file is larger than ${formatBytes(MOST_CHARACTERS)}; this is not a run file`);
  let depth = 0;
  let indent = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const letter = text[at] ?? '';
    if (isJunk(code)) return problem(at, describeJunk(code));
    if ('[{'.includes(letter)) depth += 1;
    if (']}'.includes(letter)) depth = Math.max(0, depth - 1);
    if (letter === '\n') indent = 0;
    else if (indent >= 0) indent = ' -?\t'.includes(letter) ? indent + 1 : -1;
    if (depth > DEEPEST || indent > WIDEST_INDENT)
      return problem(at, 'nested deeper than any run file; the text is not read further');
  }
  return undefined;
}

function isJunk(code: number): boolean {
  const isControl = code < 0x20 && code !== 0x09 && code !== 0x0a && code !== 0x0d;
  return isControl || code === 0x7f || code === 0xfffd;
}

function describeJunk(code: number): string {
  if (code === 0xfffd) return 'a character that is not UTF-8 text; save the file as UTF-8';
  const hex = code.toString(16).padStart(2, '0').toUpperCase();
  return `a byte 0x${hex}, which no text file holds; this is a binary file, or text saved as UTF-16: save it as UTF-8`;
}

function problem(offset: number, message: string): Problem {
  return { path: [], at: 'value', message, offset };
}
