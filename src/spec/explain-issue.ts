/**
 * What does not fit the schema → a sentence that reads on from the key: what stands there, what has to stand there, and
 * what to write where that can be guessed. Pure; never quotes a value that may be a secret.
 */
import type { z } from 'zod';
import { parseTokens } from '../base/units.ts';
import { isLaterKey, isLaterValue } from './later.ts';
import { findNearest } from './nearest.ts';
import type { Path, Problem } from './problem.ts';
import { quoteText, quoteValue } from './quote.ts';
import { findHome, findSchema, knownKeys, type SchemaNode } from './run-json-schema.ts';

type Issue = z.core.$ZodIssue;

/** A key pasted in place of its name must not reach a terminal or a log. */
const SECRET_KEYS: readonly string[] = ['api-key', 'attach'];

const NO_VARIABLE =
  'has a key that is no name of an environment variable; write NAME: value with letters, digits and _ in the name, or NAME: $NAME';

const DURATION_KEYS: readonly string[] = ['attempt-timeout', 'patience'];

const KINDS: Readonly<Record<string, string>> = {
  int: 'a whole number',
  number: 'a number',
  string: 'text',
  boolean: 'true or false',
  array: 'a list (lines that begin with a dash)',
  object: 'a map (lines of key: value)',
  record: 'a map (lines of key: value)',
};

export function explainIssues(issues: readonly Issue[], file: unknown): Problem[] {
  return issues.flatMap((issue) => explainIssue(issue, file));
}

function explainIssue(issue: Issue, file: unknown): Problem[] {
  const path = issue.path as Path;
  // Somebody may have pasted `NAME=secret` where the name stands, so the key is not repeated.
  if (issue.code === 'invalid_key') return [{ path: path.slice(0, -1), at: 'value', message: NO_VARIABLE }];
  if (issue.code === 'unrecognized_keys') return issue.keys.map((key) => unknownKey(path, key));
  const value = valueAt(file, path);
  const missing = value === undefined ? { missing: path } : {};
  return [{ path, at: 'value', message: sentenceOf(issue, path, value), ...missing }];
}

/** The mistake of a key that may not stand in the map at `parent`, with what was probably meant. */
export function unknownKey(parent: Path, key: string): Problem {
  const place = { path: [...parent, key], at: 'key' } as const;
  if (isLaterKey(parent, key))
    return { ...place, message: 'is for a later version of Aerie; this one does not know it, so leave it out' };
  const known = knownKeys(parent);
  const home = findHome(key);
  if (home !== undefined)
    return { ...place, message: `belongs ${home === '' ? 'at the left margin of the file' : `under ${home}`}, not here` };
  const near = findNearest(key, known);
  if (near === undefined) return { ...place, message: `is no key of a run file here; the keys are ${known.join(', ')}` };
  return { ...place, message: `is no key of a run file; did you mean ${near}?`, meant: [...parent, near] };
}

function sentenceOf(issue: Issue, path: Path, value: unknown): string {
  const key = String(path.at(-1) ?? '');
  const node = findSchema(path);
  if (value === undefined) return `is missing: ${node?.description ?? 'it has to be there'}`;
  if (value === null) return `has nothing after it; write a value, or leave the line out`;
  if (isLaterValue(key, value))
    return `${standing(path, value)}, which is for a later version of Aerie; this one takes only ${choices(node)}`;
  switch (issue.code) {
    case 'invalid_type':
      return `${standing(path, value)}; it must be ${expectedOf(issue.expected, node)}${hintFor(issue.expected, value, path)}`;
    case 'invalid_value':
      return `${standing(path, value)}; it must be ${choices(node)}`;
    case 'too_small':
    case 'too_big':
      return explainSize(issue.code, path, value, node);
    case 'invalid_union':
      return `${standing(path, value)}; it ${issue.message}`;
    default:
      return issue.message;
  }
}

/** `is "abc"`, `is 12`, `is a list`. */
function standing(path: Path, value: unknown): string {
  return mayBeSecret(path) ? 'is something else' : `is ${quoteValue(value)}`;
}

function mayBeSecret(path: Path): boolean {
  return SECRET_KEYS.includes(String(path.at(-1))) || (path[0] === 'servers' && path.includes('env'));
}

function expectedOf(expected: string, node: SchemaNode | undefined): string {
  const kind = KINDS[node?.type === 'integer' ? 'int' : expected] ?? expected;
  return isNumeric(expected) ? `${kind}${rangeOf(node)}` : kind;
}

function isNumeric(expected: string): boolean {
  return expected === 'int' || expected === 'number';
}

function explainSize(code: string, path: Path, value: unknown, node: SchemaNode | undefined): string {
  if (typeof value === 'number') return `${standing(path, value)}; it must be${rangeOf(node)}`;
  if (Array.isArray(value)) return 'is an empty list; it needs at least one entry';
  return code === 'too_big' ? `is ${String(value).length} characters long, more than any value here can be` : 'is empty';
}

function rangeOf(node: SchemaNode | undefined): string {
  const { minimum, exclusiveMinimum, maximum } = node ?? {};
  if (exclusiveMinimum !== undefined && maximum !== undefined) return ` above ${exclusiveMinimum} and at most ${maximum}`;
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`;
  return '';
}

function choices(node: SchemaNode | undefined): string {
  const words = node?.enum ?? (node?.const === undefined ? [] : [node.const]);
  return words.length === 0 ? rangeOf(node).trim() : words.join(' or ');
}

/** What to write instead, where the slip is one that people make. */
function hintFor(expected: string, value: unknown, path: Path): string {
  const key = String(path.at(-1) ?? '');
  const isWord = typeof value === 'number' || typeof value === 'boolean';
  if (DURATION_KEYS.includes(key) && typeof value === 'number') return ` with a unit: write ${value}s, or ${value}m`;
  if (expected === 'string' && isWord && !mayBeSecret(path)) return `: write ${quoteText(String(value))} with the quotes`;
  if (typeof value !== 'string') return '';
  const tokens = parseTokens(value);
  if (isNumeric(expected) && tokens !== undefined) return `: write ${tokens}`;
  if (isNumeric(expected) && Number.isFinite(Number(value)) && value.trim() !== '')
    return `: write ${Number(value)} without quotes`;
  if (expected === 'boolean' && /^(yes|on|no|off|true|false)$/i.test(value)) return `: write ${/^(yes|on|true)$/i.test(value)}`;
  return '';
}

export function valueAt(file: unknown, path: Path): unknown {
  let value = file;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string | number, unknown>)[step];
  }
  return value;
}
