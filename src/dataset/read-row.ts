/**
 * One row, as the bytes of its JSON or as a value → a prompt, or the reason why not. Pure.
 *
 * Promises: never throws, for any bytes; bad UTF-8 is refused and never replaced; of duplicate keys the last counts, as in
 * every JSON reader; `__proto__` is a key like any other. Cost is linear in the line, in time and memory.
 */
import type { Prompt } from '../base/conversation.ts';
import { formatCount } from '../base/units.ts';
import type { Columns } from '../spec/run.ts';
import { excerptText } from './excerpt-text.ts';
import { normaliseTurns } from './normalise-turns.ts';
import { makePrompt } from './prompt-id.ts';
import type { Rejection } from './rejection.ts';
import { reject } from './rejection.ts';
import { parseShape } from './row-shape.ts';
import { isRecord, nameType } from './row-value.ts';

export interface ReadPrompt {
  readonly kind: 'prompt';
  readonly prompt: Prompt;
}

/** How a partition's rows are taken. */
export interface RowOptions {
  /** Answer every user turn anew, or only what comes after the last one, with the answers before it as given. */
  readonly turns: 'all' | 'last';
  readonly columns: Columns;
}

export const PLAIN_ROWS: RowOptions = { turns: 'all', columns: {} };

/** 64 MiB of `{},` is 22 million objects: 4 GB of heap and 20 s. Conversations have hundreds of values, rows with token ids 10^5. */
const MOST_VALUES = 2_000_000;

/** `ignoreBOM` keeps the mark: the splitter has taken off the one at the start of the file, and any other is no JSON. */
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export function readRow(line: Uint8Array, options: RowOptions = PLAIN_ROWS): ReadPrompt | Rejection {
  if (countValuesAbove(line, MOST_VALUES)) return reject('too-many-values', `${formatCount(line.length)} bytes of JSON`);
  let text: string;
  try {
    text = UTF8.decode(line);
  } catch {
    return reject('bad-utf8', explainBadUtf8(line));
  }
  let row: unknown;
  try {
    row = JSON.parse(text);
  } catch (thrown) {
    return reject('not-json', explainBadJson(text, thrown));
  }
  return readRowValue(row, options);
}

/** The same for a row that is read already. */
export function readRowValue(row: unknown, { columns, turns }: RowOptions = PLAIN_ROWS): ReadPrompt | Rejection {
  if (!isRecord(row)) return reject('not-an-object', `the row is ${nameType(row)}`);
  const shape = parseShape(row, columns);
  if (shape.kind === 'rejected') return shape;
  const normalised = normaliseTurns(shape, turns);
  return normalised.kind === 'rejected' ? normalised : { kind: 'prompt', prompt: makePrompt(normalised.messages, shape.tools) };
}

/** Counts what begins or separates values outside strings; a line with fewer bytes than the limit is not looked at. */
function countValuesAbove(line: Uint8Array, most: number): boolean {
  if (line.length <= most) return false;
  let count = 0;
  let isInString = false;
  for (let i = 0; i < line.length; i += 1) {
    const byte = line[i];
    if (isInString) {
      if (byte === 0x5c) i += 1;
      else if (byte === 0x22) isInString = false;
    } else if (byte === 0x22) isInString = true;
    else if (byte === 0x2c || byte === 0x5b || byte === 0x7b) count += 1;
  }
  return count > most;
}

function explainBadUtf8(line: Uint8Array): string {
  const isUtf16 = (line[0] === 0xff && line[1] === 0xfe) || (line[0] === 0xfe && line[1] === 0xff) || line[1] === 0;
  return `${formatCount(line.length)} bytes${isUtf16 ? '; they look like UTF-16: convert the file with iconv -f UTF-16 -t UTF-8' : ''}`;
}

function explainBadJson(text: string, thrown: unknown): string {
  if (text.startsWith('\ufeff')) return 'the line begins with a byte order mark, as where files were put together';
  return excerptText(thrown instanceof Error ? thrown.message : String(thrown), 160);
}
