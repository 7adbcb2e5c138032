/**
 * Texts that a rule looks for, written as the engine writes them. Pure.
 *
 * In a sign, `{}` stands for any text of a line and `{name}` for a number that is kept under that name. Letter case and
 * white space do not count, so a sign is found in a wrapped line too. Each sign has an anchor, its longest fixed part: one pass over the bytes
 * of a log looks for all anchors at once (`anchor-set.ts`), and only lines that hold one are read further.
 */

export interface Sign {
  readonly text: string;
  /** The line is not this sign if it holds one of these. */
  readonly not?: readonly string[];
  /** Nothing else stands in the line. */
  readonly isWhole?: boolean;
}

export interface CompiledSign {
  readonly anchor: string;
  readonly pattern: RegExp;
  readonly not: RegExp | undefined;
}

/** Any text between two fixed parts: long enough for a path or a list of flags, short enough to be one message. */
const GAP = '.{0,400}?';
const NUMBER = '-?\\d[\\d,]*(?:\\.\\d+)?';

export function compileSign({ text, not, isWhole }: Sign): CompiledSign {
  const parts = text.split(/\{(\w*)\}/);
  let source = '';
  let anchor = '';
  parts.forEach((part, at) => {
    if (at % 2 === 1) source += part === '' ? GAP : `(?<${part}>${NUMBER})`;
    else {
      source += literal(part);
      const bare = bareText(part);
      if (bare.length > anchor.length) anchor = bare;
    }
  });
  return {
    anchor,
    pattern: new RegExp(isWhole === true ? `^\\s*${source}\\s*$` : source, 'is'),
    not: not === undefined ? undefined : new RegExp(not.map(literal).join('|'), 'i'),
  };
}

/** The named numbers of a match; undefined where the text is not this sign. */
export function matchSign(sign: CompiledSign, text: string): Readonly<Record<string, number>> | undefined {
  const found = sign.pattern.exec(text);
  if (found === null || sign.not?.test(text) === true) return undefined;
  const numbers: Record<string, number> = {};
  for (const [name, value] of Object.entries(found.groups ?? {})) numbers[name] = Number(value.replaceAll(',', ''));
  return numbers;
}

/** As the scan compares: without white space, in lower case. */
export function bareText(text: string): string {
  return text.replace(/\s+/g, '').toLowerCase();
}

/** Where the line was wrapped white space may be missing; where columns were aligned there may be more. */
function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\s+/g, '\\s*');
}
