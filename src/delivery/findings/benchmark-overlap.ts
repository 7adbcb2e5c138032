/**
 * Do prompts of the run occur in a list of benchmark prompts? Pure.
 *
 * A prompt overlaps where it has 13 words in a row of a listed one (the length that GPT-3's and The Pile's clean-up used:
 * shorter stretches are idioms). A listed prompt of 8 to 12 words must occur whole, a shorter one must be the whole message.
 * Case, punctuation and spaces do not count. Words are compared by 53-bit hashes: a false hit is less likely than
 * one in 10 for a billion stretches against a list of a million.
 */
import { hashWord, mix, wordsOf } from './words.ts';

export const GRAM_WORDS = 13;
const LEAST_GRAM_WORDS = 8;

export interface BenchmarkPrompts {
  /** Prompts in the list. */
  readonly count: number;
  overlaps(message: string): boolean;
}

export function indexBenchmarks(prompts: readonly string[]): BenchmarkPrompts {
  const grams = new Map<number, Set<number>>();
  const whole = new Set<string>();
  for (const prompt of prompts) {
    const words = wordsOf(prompt);
    if (words.length < LEAST_GRAM_WORDS) {
      if (words.length > 0) whole.add(words.join(' '));
      continue;
    }
    const size = Math.min(words.length, GRAM_WORDS);
    const known = grams.get(size) ?? new Set();
    for (const gram of gramsOf(words, size)) known.add(gram);
    grams.set(size, known);
  }
  return {
    count: prompts.length,
    overlaps(message) {
      const words = wordsOf(message);
      if (words.length < LEAST_GRAM_WORDS) return words.length > 0 && whole.has(words.join(' '));
      return [...grams].some(([size, known]) => gramsOf(words, size).some((gram) => known.has(gram)));
    },
  };
}

function gramsOf(words: readonly string[], size: number): number[] {
  const high = words.map((word) => hashWord(word));
  const low = words.map((word) => hashWord(word, 0x9e3779b9));
  const grams: number[] = [];
  for (let end = size; end <= words.length; end += 1) {
    let [one, other] = [0, 0];
    for (let at = end - size; at < end; at += 1) {
      one = mix(Math.imul(one, 31) + (high[at] ?? 0));
      other = mix(Math.imul(other, 33) + (low[at] ?? 0));
    }
    grams.push(one * 2 ** 21 + (other >>> 11));
  }
  return grams;
}

/** Where the common benchmark files keep their prompts; of a row, the first of these that is there. */
const FIELDS = [
  'prompt',
  'question',
  'instruction',
  'problem',
  'input',
  'text',
  'query',
  'goal',
  'turns',
  'messages',
  'conversations',
];

export interface BenchmarkList {
  readonly prompts: readonly string[];
  /** Lines in which no prompt was found. */
  readonly unread: number;
}

/** A list file: JSON lines, one JSON array, or plain text with a prompt on each line. */
export function parseBenchmarks(text: string): BenchmarkList {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const rows = asArray(text) ?? lines.map((line) => parseOr(line, line.trim()));
  const found = rows.map(promptsIn);
  return { prompts: found.flat(), unread: found.filter((prompts) => prompts.length === 0).length };
}

function asArray(text: string): unknown[] | undefined {
  if (!text.trimStart().startsWith('[')) return undefined;
  const value = parseOr(text, undefined);
  return Array.isArray(value) ? value : undefined;
}

function parseOr(text: string, otherwise: unknown): unknown {
  if (!/^\s*["[{]/.test(text)) return otherwise;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return otherwise;
  }
}

function promptsIn(row: unknown): string[] {
  if (typeof row === 'string') return row.trim() === '' ? [] : [row];
  if (Array.isArray(row)) return row.flatMap(promptsInMessage);
  if (typeof row !== 'object' || row === null) return [];
  const fields = row as Readonly<Record<string, unknown>>;
  const name = FIELDS.find((field) => Object.hasOwn(fields, field));
  return name === undefined ? [] : promptsIn(fields[name]);
}

/** Of a conversation, what the user says. */
function promptsInMessage(message: unknown): string[] {
  if (typeof message !== 'object' || message === null) return promptsIn(message);
  const { role, from, content, value } = message as Readonly<Record<string, unknown>>;
  const speaker = role ?? from;
  return speaker === 'user' || speaker === 'human' ? promptsIn(content ?? value) : [];
}
