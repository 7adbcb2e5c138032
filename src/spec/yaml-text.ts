/**
 * YAML text → plain values, the mistakes of the YAML itself, and the place of every path.
 * Promises: never throws for any text; a value is reported only where it can be trusted: with `readable: false`
 * nothing but `problems` means anything. YAML 1.2 core: `yes` is text, dates are text, `<<` is a key like any other.
 */
import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument } from 'yaml';
import type { Path, Problem } from './problem.ts';
import { escapeText } from './quote.ts';
import { findUnreadable } from './unreadable-text.ts';

export interface YamlText {
  readonly readable: boolean;
  readonly value: unknown;
  readonly problems: readonly Problem[];
  /** Paths that could not be read; what is missing at or below them is no further mistake. */
  readonly broken: readonly Path[];
  lineAndColumn(problem: Problem): { readonly line: number; readonly column: number };
}

/** Aliases can make a short text huge; a run file has some hundred values. */
const MOST_VALUES = 20_000;

interface Place {
  key: number;
  value: number;
}

export function readYaml(given: string): YamlText {
  const text = given.startsWith('\uFEFF') ? given.slice(1) : given; // a byte order mark is no part of line 1
  const lines = new LineCounter();
  const junk = findUnreadable(text);
  if (junk !== undefined) {
    lines.addNewLine(0);
    for (let at = text.indexOf('\n'); at !== -1 && at < (junk.offset ?? 0); at = text.indexOf('\n', at + 1))
      lines.addNewLine(at + 1);
    return unreadable([junk], lines);
  }
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: false, prettyErrors: false });
  if (lines.lineStarts.length === 0) lines.addNewLine(0); // a text without any token
  const mistakes = [...document.errors, ...document.warnings].map((error) =>
    syntaxProblem(error.code, error.message, error.pos[0]),
  );
  if (document.directives.yaml.version !== '1.2') mistakes.push(syntaxProblem('VERSION', '', 0));
  if (mistakes.length > 0) return unreadable(firstOfEachPlace(mistakes), lines);
  return new Reading(document, lines).read();
}

/** The parser may say several things about one character; the first is the one to act on. */
function firstOfEachPlace(problems: readonly Problem[]): Problem[] {
  const seen = new Set<number | undefined>();
  return problems.filter(({ offset }) => !seen.has(offset) && seen.add(offset));
}

function unreadable(problems: readonly Problem[], lines: LineCounter): YamlText {
  return {
    readable: false,
    value: undefined,
    problems,
    broken: [],
    lineAndColumn: (problem) => linePosition(lines, problem.offset ?? 0),
  };
}

/** One walk over the parsed document: values out, places and mistakes noted on the way. */
class Reading {
  readonly #document: Document.Parsed;
  readonly #lines: LineCounter;
  readonly #places = new Map<string, Place>();
  readonly #problems: Problem[] = [];
  readonly #broken: Path[] = [];
  #values = 0;

  constructor(document: Document.Parsed, lines: LineCounter) {
    this.#document = document;
    this.#lines = lines;
  }

  read(): YamlText {
    const contents = this.#document.contents;
    const offset = contents?.range?.[0] ?? 0;
    this.#places.set('[]', { key: offset, value: offset });
    const value = this.#valueOf(contents, [], []);
    return {
      readable: true,
      value,
      problems: this.#problems,
      broken: this.#broken,
      lineAndColumn: (problem) => linePosition(this.#lines, problem.offset ?? this.#offsetOf(problem)),
    };
  }

  /** `inside` are the nodes around this one: an alias to one of them would never end. */
  #valueOf(node: Node | null, path: Path, inside: readonly Node[]): unknown {
    this.#values += 1;
    if (this.#values === MOST_VALUES)
      this.#report(path, node, 'makes the file too large: its aliases repeat more than a run file can hold');
    if (this.#values >= MOST_VALUES) return undefined;
    if (isAlias(node)) {
      const target = node.resolve(this.#document);
      if (target === undefined)
        return this.#report(path, node, `is *${escapeText(node.source)}, but no &${escapeText(node.source)} stands before it`);
      if (inside.includes(target)) return this.#report(path, node, `is *${escapeText(node.source)}, which holds itself`);
      return this.#valueOf(target, path, inside);
    }
    if (isMap(node)) return this.#mapOf(node.items as Pair<Node, Node | null>[], path, [...inside, node]);
    if (isSeq(node)) return (node.items as (Node | null)[]).map((item, i) => this.#item(item, [...path, i], [...inside, node]));
    return isScalar(node) ? node.value : null;
  }

  #item(node: Node | null, path: Path, inside: readonly Node[]): unknown {
    const offset = node?.range?.[0] ?? this.#offsetOf({ path, at: 'value', message: '' });
    this.#places.set(JSON.stringify(path), { key: offset, value: offset });
    return this.#valueOf(node, path, inside);
  }

  #mapOf(pairs: readonly Pair<Node, Node | null>[], path: Path, inside: readonly Node[]): Record<string, unknown> {
    const map: Record<string, unknown> = {};
    const firstLine = new Map<string, number>();
    for (const { key: keyNode, value: node } of pairs) {
      const key = this.#keyOf(keyNode, path);
      if (key === undefined) continue;
      const at = keyNode.range?.[0] ?? 0;
      // Nothing after the colon: the key is the only thing there is to point at.
      const isEmpty = node === null || (isScalar(node) && node.value === null && (node.source ?? '') === '');
      const below = [...path, key];
      this.#places.set(JSON.stringify(below), { key: at, value: isEmpty ? at : (node.range?.[0] ?? at) });
      const before = firstLine.get(key);
      if (before !== undefined) {
        const message = `is written twice, first on line ${before}; keep one of them`;
        this.#problems.push({ path: below, at: 'key', message, offset: at });
      }
      firstLine.set(key, before ?? linePosition(this.#lines, at).line);
      map[key] = this.#valueOf(node, below, inside);
    }
    return map;
  }

  #keyOf(node: Node | null, path: Path): string | undefined {
    const target = isAlias(node) ? node.resolve(this.#document) : node;
    if (isScalar(target) && target.value !== null && target.value !== '__proto__') return String(target.value);
    const message = 'a key here is no plain word; write it in letters';
    this.#problems.push({
      path: [],
      at: 'key',
      message,
      offset: node?.range?.[0] ?? this.#offsetOf({ path, at: 'value', message }),
    });
    return undefined;
  }

  #report(path: Path, node: Node | null, message: string): undefined {
    const offset = node?.range?.[0];
    this.#problems.push({ path, at: 'value', message, ...(offset === undefined ? {} : { offset }) });
    this.#broken.push(path);
    return undefined;
  }

  /** The place of the path, or of the nearest map around it that is written in the file. */
  #offsetOf(problem: Problem): number {
    for (let length = problem.path.length; length >= 0; length -= 1) {
      const place = this.#places.get(JSON.stringify(problem.path.slice(0, length)));
      if (place !== undefined) return length === problem.path.length ? place[problem.at] : place.value;
    }
    return 0;
  }
}

function linePosition(lines: LineCounter, offset: number): { line: number; column: number } {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

/** The syntax mistakes people make most, in words that say what to do; the parser's own sentence for the rest. */
const SYNTAX: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'a tab stands where YAML wants spaces; indent with spaces',
  MULTIPLE_DOCS: 'a second document begins here (---); a run file is one document',
  BLOCK_AS_IMPLICIT_KEY: 'a second "key: value" on one line; put text that holds ": " in quotes',
  BAD_SCALAR_START: 'text that begins with @ or ` has to stand in quotes',
  VERSION: 'the file says that it is another YAML than 1.2; leave the %YAML line out',
  TAG_RESOLVE_FAILED: 'a tag (!…) that a run file does not know; write the plain value',
};

function syntaxProblem(code: string, message: string, offset: number): Problem {
  const own = SYNTAX[code];
  const sentence = own ?? `the YAML cannot be read here: ${escapeText(message.split('\n')[0] ?? '').slice(0, 200)}`;
  return { path: [], at: 'value', message: sentence, offset };
}
