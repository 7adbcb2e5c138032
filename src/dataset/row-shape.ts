/**
 * Where a row keeps its conversation: the shapes that people's files have → one list of turns as written. Pure; looks at own
 * keys only, and never below the entries of the list, so depth costs nothing.
 *
 * The first of messages, conversations, turns, prompt that has the right type wins (rows often carry the first question
 * once more under `prompt`). A `system` beside the list leads it.
 */

import { findNearest } from '../spec/nearest.ts';
import { excerptText } from './excerpt-text.ts';
import type { Rejection } from './rejection.ts';
import { reject } from './rejection.ts';

/** A turn as the row has it: nothing is known of role and content yet. */
export interface WrittenTurn {
  readonly role: unknown;
  readonly content: unknown;
  readonly callsTools: boolean;
  /** For people: `messages[3]`. */
  readonly place: string;
}

export interface WrittenConversation {
  readonly kind: 'conversation';
  readonly turns: readonly WrittenTurn[];
  /** `turns` and `prompt` hold user turns alone, so nothing needs to alternate. */
  readonly onlyUserTurns: boolean;
}

type Row = Readonly<Record<string, unknown>>;

const LIST_KEYS = ['messages', 'conversations', 'turns'] as const;
const KNOWN_KEYS = [...LIST_KEYS, 'prompt'] as const;
/** Enough keys to recognise a data set by. */
const MOST_KEYS_SHOWN = 8;

export function parseShape(row: Row): WrittenConversation | Rejection {
  if (['tools', 'functions'].some((key) => isPresent(own(row, key)))) {
    return reject('tools-not-supported', 'the row has a list of tools');
  }
  const lead = systemTurn(row);
  for (const key of LIST_KEYS) {
    const list = own(row, key);
    if (!Array.isArray(list)) continue;
    const entries: readonly unknown[] = list;
    if (key === 'turns') {
      return {
        kind: 'conversation',
        turns: [...lead, ...entries.map((text, i) => userTurn(text, `turns[${i}]`))],
        onlyUserTurns: true,
      };
    }
    const wrong = entries.findIndex((entry) => !isRecord(entry));
    if (wrong !== -1) return reject('unknown-shape', `${key}[${wrong}] is ${nameType(entries[wrong])}, not an object`);
    const turns = entries.filter(isRecord).map((entry, i) => messageTurn(entry, `${key}[${i}]`));
    return { kind: 'conversation', turns: [...lead, ...turns], onlyUserTurns: false };
  }
  const prompt = own(row, 'prompt');
  if (typeof prompt === 'string') {
    return { kind: 'conversation', turns: [...lead, userTurn(prompt, 'prompt')], onlyUserTurns: true };
  }
  return reject('unknown-shape', explainUnknownShape(row));
}

function userTurn(content: unknown, place: string): WrittenTurn {
  return { role: 'user', content, callsTools: false, place };
}

function messageTurn(entry: Row, place: string): WrittenTurn {
  return {
    role: own(entry, 'role') ?? own(entry, 'from'),
    content: own(entry, 'content') ?? own(entry, 'value'),
    callsTools: ['tool_calls', 'function_call'].some((key) => isPresent(own(entry, key))),
    place,
  };
}

/** A column named `system`: null or blank means that the row has none. */
function systemTurn(row: Row): readonly WrittenTurn[] {
  const content = own(row, 'system');
  if (content === undefined || content === null || (typeof content === 'string' && content.trim() === '')) return [];
  return [{ role: 'system', content, callsTools: false, place: 'system' }];
}

function explainUnknownShape(row: Row): string {
  for (const key of KNOWN_KEYS) {
    const value = own(row, key);
    if (value !== undefined && value !== null) {
      return `${key} is ${nameType(value)}, not ${key === 'prompt' ? 'a string (a list of messages belongs under messages)' : 'a list'}`;
    }
  }
  const keys = Object.keys(row);
  if (keys.length === 0) return 'the row has no keys';
  const shown = keys
    .slice(0, MOST_KEYS_SHOWN)
    .map((key) => excerptText(key, 40))
    .join(', ');
  const more = keys.length > MOST_KEYS_SHOWN ? ` and ${keys.length - MOST_KEYS_SHOWN} more` : '';
  for (const key of keys.slice(0, MOST_KEYS_SHOWN)) {
    const near = findNearest(key, KNOWN_KEYS);
    if (near !== undefined && near !== key)
      return `its keys are ${shown}${more}; did you mean ${near} instead of ${excerptText(key, 40)}?`;
  }
  return `its keys are ${shown}${more}`;
}

function own(row: Row, key: string): unknown {
  return Object.hasOwn(row, key) ? row[key] : undefined;
}

/** null, '', '[]', 'null', [] and {} all mean that the column is not used in this row. */
function isPresent(value: unknown): boolean {
  if (value === undefined || value === null || value === false) return false;
  if (typeof value === 'string') return !['', '[]', '{}', 'null', 'None'].includes(value.trim());
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

export function isRecord(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function nameType(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
