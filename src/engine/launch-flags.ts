/**
 * Engine flags as people write them → values by the engine's own name for each. Pure.
 * `--flag value`, `--flag=value`, aliases, unique beginnings (argparse takes `--tp` for `--tp-size`), negations, lists, and
 * the mapping of a run file mean the same. Promises: the last of several wins, as in the engines; a flag that the table does not
 * have is passed over and named in `unread`; a wrong value is a sentence in `problems`, never an exception.
 */

export type FlagKind = 'switch' | 'count' | 'size' | 'fraction' | 'text' | 'list';

export interface FlagRow {
  /** As the engine's newest version spells it, without dashes. */
  readonly name: string;
  readonly kind: FlagKind;
  /** Other spellings, without dashes; a single letter or a name for one dash (`tp` for vLLM's `-tp`) too. */
  readonly aliases?: readonly string[];
  /** `--no-NAME` is understood as well. */
  readonly isNegatable?: boolean;
}

export interface FlagTable {
  readonly rows: readonly FlagRow[];
  /** vLLM takes `--max_model_len` for `--max-model-len`. */
  readonly underscoresAreDashes: boolean;
}

export type FlagValue = string | number | boolean | readonly number[];

export interface ParsedFlags {
  /** By `FlagRow.name`. */
  readonly values: Readonly<Record<string, FlagValue>>;
  readonly unread: readonly string[];
  readonly problems: readonly string[];
}

export function parseFlagWords(words: readonly string[], table: FlagTable): ParsedFlags {
  const pairs: [string, string[]][] = [];
  for (const word of words) {
    const isFlag = /^--?[A-Za-z]/.test(word);
    if (!isFlag) {
      const last = pairs.at(-1);
      if (last === undefined) pairs.push([word, []]);
      else last[1].push(word);
      continue;
    }
    const at = word.indexOf('=');
    pairs.push(at === -1 ? [word, []] : [word.slice(0, at), [word.slice(at + 1)]]);
  }
  return collect(pairs, table);
}

/** The mapping of a run file: `true` stands for a switch that is given, `false` for one that is not. */
export function parseFlagRecord(record: Readonly<Record<string, string | number | boolean>>, table: FlagTable): ParsedFlags {
  const pairs = Object.entries(record).flatMap(([name, value]): [string, string[]][] => {
    const flag = `--${name.replace(/^-+/, '')}`;
    if (value === true) return [[flag, []]];
    return value === false ? [[flag, ['false']]] : [[flag, String(value).split(' ')]];
  });
  return collect(pairs, table);
}

function collect(pairs: readonly (readonly [string, readonly string[]])[], table: FlagTable): ParsedFlags {
  const values: Record<string, FlagValue> = {};
  const unread: string[] = [];
  const problems: string[] = [];
  for (const [written, given] of pairs) {
    const found = findFlag(written, table);
    if (found === undefined) {
      unread.push([written, ...given].join(' '));
      continue;
    }
    const value = readValue(found.row, given, found.isNegated);
    if (value === undefined) problems.push(describeMistake(written, found.row, given));
    else values[found.row.name] = value;
  }
  return { values, unread, problems };
}

/** The row that a spelling means, dashes or not; undefined where the table has none, or several begin so. */
export function findFlag(written: string, table: FlagTable): { readonly row: FlagRow; readonly isNegated: boolean } | undefined {
  const bare = written.replace(/^-+/, '');
  const name = table.underscoresAreDashes ? bare.replaceAll('_', '-') : bare;
  const exact = (wanted: string) => table.rows.find((row) => row.name === wanted || (row.aliases ?? []).includes(wanted));
  const row = exact(name);
  if (row !== undefined) return { row, isNegated: false };
  if (name.startsWith('no-')) {
    const negated = exact(name.slice(3));
    if (negated?.isNegatable === true) return { row: negated, isNegated: true };
  }
  const begun = table.rows.filter((one) => [one.name, ...(one.aliases ?? [])].some((spelling) => spelling.startsWith(name)));
  const [only] = begun;
  return begun.length === 1 && only !== undefined && name.length >= 2 ? { row: only, isNegated: false } : undefined;
}

function readValue(row: FlagRow, given: readonly string[], isNegated: boolean): FlagValue | undefined {
  const [first] = given;
  switch (row.kind) {
    case 'switch':
      return first === undefined ? !isNegated : SWITCH_WORDS.get(first.toLowerCase());
    case 'count':
      return first !== undefined && /^-?\d+$/.test(first) ? Number(first) : undefined;
    case 'size':
      return first === undefined ? undefined : readSize(first);
    case 'fraction':
      return first !== undefined && /^\d*\.?\d+(e-?\d+)?$/i.test(first) ? Number(first) : undefined;
    case 'list':
      return readList(given);
    case 'text':
      return first;
  }
}

const SWITCH_WORDS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['1', true],
  ['false', false],
  ['0', false],
]);

function readList(given: readonly string[]): number[] | undefined {
  const numbers = given.flatMap((text) => text.split(/[,\s[\]]+/)).filter((text) => text !== '');
  return numbers.length > 0 && numbers.every((text) => /^\d+$/.test(text)) ? numbers.map(Number) : undefined;
}

/** vLLM reads `32k` as 32,000 and `32K` as 32,768. */
function readSize(text: string): number | undefined {
  const match = /^(-?\d+(?:\.\d+)?)([kmgtKMGT]?)(?:i?B)?$/.exec(text);
  if (match === null) return undefined;
  const letter = match[2] ?? '';
  const power = letter === '' ? 0 : 'kmgt'.indexOf(letter.toLowerCase()) + 1;
  const base = letter === letter.toLowerCase() ? 1000 : 1024;
  return Math.round(Number(match[1]) * base ** power);
}

const WANTED: Readonly<Record<FlagKind, string>> = {
  switch: 'takes no value',
  count: 'takes a whole number',
  size: 'takes a whole number, as 32768, 32k or 32K',
  fraction: 'takes a number, as 0.88',
  list: 'takes whole numbers',
  text: 'takes a value',
};

function describeMistake(written: string, row: FlagRow, given: readonly string[]): string {
  const said = given.length === 0 ? 'nothing' : `"${given.join(' ').slice(0, 40)}"`;
  return `${written} ${WANTED[row.kind]}; ${said} was given`;
}
