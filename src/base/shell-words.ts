/**
 * The words of one simple shell command, each with its place, so that words can be put between them and the rest stays as it is
 * written. Pure. The text is a person's, and a shell reads it later: nothing is expanded here.
 */
export interface ShellWord {
  /** What a program gets, quotes taken off; where it is not plain, as it is written. */
  readonly text: string;
  /** A shell changes nothing of it: no variable, no command, no pattern, no brace, no tilde. */
  readonly isPlain: boolean;
  readonly start: number;
  readonly end: number;
}

/** undefined: it is more than one simple command (`;`, `&&`, `|`, `>`, a comment), or a quote is not closed. */
export function splitShellWords(line: string): readonly ShellWord[] | undefined {
  const words: ShellWord[] = [];
  for (let at = 0; ; ) {
    while (isBlank(line[at])) at += 1;
    if (at >= line.length) return words;
    if (line[at] === '#') return undefined;
    const word = readWord(line, at);
    if (word === undefined || word.end === at) return undefined;
    words.push(word);
    at = word.end;
  }
}

/** What ends a word without being a blank begins another command, or a redirection. */
const OPERATORS = ';&|<>()\n\r';
/** What a shell may change in a word without quotes. `=` and `!` are changed by interactive shells alone. */
const CHANGED = '*?[{}$`';

interface Piece {
  readonly text: string;
  readonly isPlain: boolean;
  readonly end: number;
}

function readWord(line: string, start: number): ShellWord | undefined {
  let text = '';
  let isPlain = line[start] !== '~';
  let at = start;
  while (at < line.length && !isBlank(line[at])) {
    if (OPERATORS.includes(line[at] ?? '')) break;
    const piece = readPiece(line, at);
    if (piece === undefined) return undefined;
    text += piece.text;
    isPlain &&= piece.isPlain;
    at = piece.end;
  }
  if (at < line.length && !isBlank(line[at])) return undefined;
  return { text: isPlain ? text : line.slice(start, at), isPlain, start, end: at };
}

function readPiece(line: string, at: number): Piece | undefined {
  const character = line[at] ?? '';
  if (character === "'") {
    const end = line.indexOf("'", at + 1);
    return end === -1 ? undefined : { text: line.slice(at + 1, end), isPlain: true, end: end + 1 };
  }
  if (character === '"') return readDoubleQuoted(line, at + 1);
  if (character === '\\') {
    const next = line[at + 1];
    // A backslash before the end of the line joins two lines, and at the very end stands for nothing that is sure.
    return next === undefined || next === '\n' ? undefined : { text: next, isPlain: true, end: at + 2 };
  }
  if (character === '$' || character === '`') return readExpansion(line, at);
  return { text: character, isPlain: !CHANGED.includes(character), end: at + 1 };
}

function readDoubleQuoted(line: string, start: number): Piece | undefined {
  let text = '';
  let isPlain = true;
  for (let at = start; at < line.length; ) {
    const character = line[at] ?? '';
    if (character === '"') return { text, isPlain, end: at + 1 };
    if (character === '\\') {
      const next = line[at + 1] ?? '';
      text += '$`"\\'.includes(next) ? next : `\\${next}`;
      at += 2;
    } else if (character === '$' || character === '`') {
      const expansion = readExpansion(line, at);
      if (expansion === undefined) return undefined;
      isPlain = false;
      at = expansion.end;
    } else {
      text += character;
      at += 1;
    }
  }
  return undefined;
}

/** `$NAME`, `${…}`, `$(…)` and a command between backticks: passed over as a whole. */
function readExpansion(line: string, at: number): Piece | undefined {
  const next = line[at + 1];
  if (line[at] === '`') return passed(line.indexOf('`', at + 1));
  if (next === "'" || next === '"') return undefined; // $'…' and $"…" are read in another way by each shell
  if (next === '(') return passed(findClosing(line, at + 1, ')'));
  return passed(next === '{' ? findClosing(line, at + 1, '}') : at);
}

/** Up to its last character; -1 = it is not closed. */
function passed(last: number): Piece | undefined {
  return last === -1 ? undefined : { text: '', isPlain: false, end: last + 1 };
}

/** Where the bracket at `start` is closed, those in quotes not counted. */
function findClosing(line: string, start: number, close: string): number {
  let depth = 0;
  for (let at = start; at < line.length; ) {
    const character = line[at] ?? '';
    if (character === line[start]) depth += 1;
    if (character === close) depth -= 1;
    if (depth === 0) return at;
    const isQuote = character === "'" || character === '"' || character === '\\';
    const end = isQuote ? readPiece(line, at)?.end : at + 1;
    if (end === undefined) return -1;
    at = end;
  }
  return -1;
}

function isBlank(character: string | undefined): boolean {
  return character === ' ' || character === '\t';
}
