/**
 * The content of a message → text. Pure. A list of parts that are all text is joined by line feeds: vLLM does the same for
 * templates that take a string, other engines join otherwise, and what Aerie sends is one string that all read alike.
 */

import { excerptText } from './excerpt-text.ts';
import { type Rejection, reject } from './rejection.ts';
import { isRecord, nameType, own } from './row-value.ts';

/** Half a surrogate pair; `isWellFormed()` says the same and is seven times as fast, but the library types of es2023 lack it. */
const HALF_PAIR = /\p{Surrogate}/u;

/** `null` and missing are empty text where `mayBeEmpty`. */
export function parseContent(content: unknown, place: string, mayBeEmpty: boolean): string | Rejection {
  if (!Array.isArray(content)) return parseText(content, place, mayBeEmpty);
  const parts: string[] = [];
  for (const [at, part] of (content as readonly unknown[]).entries()) {
    const text = isRecord(part) ? own(part, 'text') : part;
    if (typeof text !== 'string') return reject('content-not-text', `${place} has a part ${at + 1} that is ${namePart(part)}`);
    parts.push(text);
  }
  return parseText(parts.join('\n'), place, mayBeEmpty);
}

function namePart(part: unknown): string {
  const type = isRecord(part) ? own(part, 'type') : undefined;
  return typeof type === 'string' ? `of type ${excerptText(type, 40)}` : nameType(part);
}

function parseText(text: unknown, place: string, mayBeEmpty: boolean): string | Rejection {
  if (text === undefined || text === null) return mayBeEmpty ? '' : reject('empty-content', `${place} has no content`);
  if (typeof text !== 'string') return reject('content-not-text', `${place} is ${nameType(text)}, not a string`);
  if (text.trim() === '' && !mayBeEmpty) {
    return reject('empty-content', text === '' ? `${place} is empty` : `${place} is ${text.length} characters of white space`);
  }
  if (HALF_PAIR.test(text)) return reject('lone-surrogate', `${place}, at character ${text.search(HALF_PAIR) + 1}`);
  if (text.includes('\0')) return reject('nul-character', `${place}, at character ${text.indexOf('\0') + 1}`);
  return text;
}
