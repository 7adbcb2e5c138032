/**
 * Where a row keeps its conversation: the shapes that people's files have → one list of turns as written, and the tools that
 * it offers. Pure; looks at own keys only, and never below the entries of the list, so depth costs nothing.
 *
 * The first of messages, conversations, turns, prompt, instruction that has the right type wins (rows often carry the first
 * question once more under `prompt`). A `system` beside it leads. Where `columns:` names the place of a conversation, only
 * the named places are looked at. A list may be written as JSON text, as CSV has to.
 */

import { findNearest } from '../spec/nearest.ts';
import { COLUMN_NAMES, type ColumnName, type Columns } from '../spec/run.ts';
import { excerptText } from './excerpt-text.ts';
import type { Rejection } from './rejection.ts';
import { reject } from './rejection.ts';
import { isPresent, isRecord, nameType, own, type Row, valueAt } from './row-value.ts';
import { parseTools } from './tool-shape.ts';

/** A turn as the row has it: nothing is known of role and content yet. */
export interface WrittenTurn {
  readonly role: unknown;
  readonly content: unknown;
  /** Tool calls of an assistant message, however they are written; undefined = none. */
  readonly calls: unknown;
  /** Of a tool's result, where the row says it. */
  readonly toolCallId: unknown;
  readonly name: unknown;
  /** For people: `messages[3]`. */
  readonly place: string;
}

export interface WrittenConversation {
  readonly kind: 'conversation';
  readonly turns: readonly WrittenTurn[];
  /** `turns`, `prompt` and `instruction` hold user turns alone, so nothing needs to alternate. */
  readonly onlyUserTurns: boolean;
  /** Definitions, each as its JSON text. */
  readonly tools: readonly string[];
}

const LIST_KEYS = ['messages', 'conversations', 'turns'] as const;
const KNOWN_KEYS = [...LIST_KEYS, 'prompt', 'instruction'] as const;
/** Those of `columns:` that say where the conversation is. */
const CONVERSATION_COLUMNS: readonly ColumnName[] = ['messages', 'turns', 'prompt', 'instruction', 'input'];
/** Enough keys to recognise a data set by. */
const MOST_KEYS_SHOWN = 8;

/** Top-level names that may matter to a reader that can leave columns out. */
export function wantedColumns(columns: Columns): readonly string[] {
  const mapped = Object.values(columns).flatMap((path) => [path, path.split('.')[0] ?? path]);
  return [...new Set([...COLUMN_NAMES, 'conversations', 'functions', ...mapped])];
}

export function parseShape(row: Row, columns: Columns = {}): WrittenConversation | Rejection {
  const fields = fieldsOf(row, columns);
  const missing = CONVERSATION_COLUMNS.find(
    (name) => columns[name] !== undefined && name !== 'input' && isNothing(fields.of(name)),
  );
  if (missing !== undefined) {
    return reject(
      'unknown-shape',
      `the row has nothing at ${excerptText(columns[missing] ?? '', 40)} (columns.${missing}); ${explainKeys(row)}`,
    );
  }
  const tools = parseTools(fields.of('tools') ?? (columns.tools === undefined ? own(row, 'functions') : undefined));
  if ('kind' in tools) return tools;
  const found = parseTurns(row, fields);
  if ('kind' in found) return found;
  return { kind: 'conversation', ...found, turns: [...systemTurn(fields), ...found.turns], tools };
}

interface Fields {
  of(name: ColumnName | 'conversations'): unknown;
  /** For people: the column that it stands in. */
  placeOf(name: ColumnName | 'conversations'): string;
}

function fieldsOf(row: Row, columns: Columns): Fields {
  const isMapped = CONVERSATION_COLUMNS.some((name) => columns[name] !== undefined);
  const mapped = (name: string) => columns[name as ColumnName];
  return {
    of(name) {
      const path = mapped(name);
      if (path !== undefined) return valueAt(row, path);
      return isMapped && (name === 'conversations' || CONVERSATION_COLUMNS.includes(name)) ? undefined : own(row, name);
    },
    placeOf: (name) => excerptText(mapped(name) ?? name, 40),
  };
}

type FoundTurns = Pick<WrittenConversation, 'turns' | 'onlyUserTurns'>;

function parseTurns(row: Row, fields: Fields): FoundTurns | Rejection {
  for (const key of LIST_KEYS) {
    const entries = listOf(fields.of(key));
    if (entries === undefined) continue;
    const place = fields.placeOf(key);
    if (key === 'turns') {
      return { turns: entries.map((text, i) => userTurn(text, `${place}[${i}]`)), onlyUserTurns: true };
    }
    const wrong = entries.findIndex((entry) => !isRecord(entry));
    if (wrong !== -1) return reject('unknown-shape', `${place}[${wrong}] is ${nameType(entries[wrong])}, not an object`);
    return { turns: entries.filter(isRecord).map((entry, i) => messageTurn(entry, `${place}[${i}]`)), onlyUserTurns: false };
  }
  const prompt = fields.of('prompt');
  if (typeof prompt === 'string') return { turns: [userTurn(prompt, fields.placeOf('prompt'))], onlyUserTurns: true };
  const instruction = fields.of('instruction');
  if (typeof instruction === 'string') {
    const text = joinInstruction(instruction, fields.of('input'));
    return { turns: [userTurn(text, fields.placeOf('instruction'))], onlyUserTurns: true };
  }
  return reject('unknown-shape', explainUnknownShape(row, fields));
}

/** A list, or the JSON text of one. */
function listOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  if (typeof value !== 'string' || !value.trimStart().startsWith('[')) return undefined;
  try {
    const parsed: unknown = JSON.parse(value);
    return Array.isArray(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/** An empty line between the two, as a person would write them; a blank input is none. */
function joinInstruction(instruction: string, input: unknown): unknown {
  if (input === undefined || input === null || (typeof input === 'string' && input.trim() === '')) return instruction;
  return typeof input === 'string' ? `${instruction}\n\n${input}` : input;
}

const NO_TOOLS = { calls: undefined, toolCallId: undefined, name: undefined };

function userTurn(content: unknown, place: string): WrittenTurn {
  return { role: 'user', content, ...NO_TOOLS, place };
}

function messageTurn(entry: Row, place: string): WrittenTurn {
  const calls = [own(entry, 'tool_calls'), own(entry, 'function_call')].find(isPresent);
  return {
    role: own(entry, 'role') ?? own(entry, 'from'),
    content: own(entry, 'content') ?? own(entry, 'value'),
    calls,
    toolCallId: own(entry, 'tool_call_id'),
    name: own(entry, 'name'),
    place,
  };
}

/** A column named `system`: null or blank means that the row has none. */
function systemTurn(fields: Fields): readonly WrittenTurn[] {
  const content = fields.of('system');
  if (content === undefined || content === null || (typeof content === 'string' && content.trim() === '')) return [];
  return [{ role: 'system', content, ...NO_TOOLS, place: fields.placeOf('system') }];
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null;
}

function explainUnknownShape(row: Row, fields: Fields): string {
  for (const key of KNOWN_KEYS) {
    const value = fields.of(key);
    if (isNothing(value)) continue;
    const isText = key === 'prompt' || key === 'instruction';
    return `${fields.placeOf(key)} is ${nameType(value)}, not ${isText ? 'a string (a list of messages belongs under messages)' : 'a list'}`;
  }
  return explainKeys(row);
}

function explainKeys(row: Row): string {
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
