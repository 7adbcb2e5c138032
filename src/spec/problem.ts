/**
 * One mistake in a run file: which key, where, and a sentence. Pure.
 * The sentence reads on from the key: `servers[0].port  is 70000; it must be from 0 to 65535`.
 */
import { escapeText } from './quote.ts';

export type Path = readonly (string | number)[];

export interface Problem {
  readonly path: Path;
  /** What the place points at: the key as written, or what stands behind it. */
  readonly at: 'key' | 'value';
  readonly message: string;
  /** Where in the text, for mistakes that no path leads to (YAML syntax, a key written twice). */
  readonly offset?: number;
  /** The known key that an unknown one was probably meant to be. */
  readonly meant?: Path;
  /** The key that is not there, where that is the mistake. */
  readonly missing?: Path;
}

/** `servers[0].flags.kv-type`; empty for the file itself. */
export function renderPath(path: Path): string {
  let text = '';
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`;
    else text += `${text === '' ? '' : '.'}${renderStep(step)}`;
  }
  return text;
}

function renderStep(key: string): string {
  if (/^[\w-]{1,60}$/.test(key)) return key;
  return escapeText(JSON.stringify(key.length > 60 ? `${key.slice(0, 60)}…` : key));
}

/** One mistake for each slip: where `modle` is pointed out, a missing `model` is the same news. */
export function leaveOutRepeated(problems: readonly Problem[]): Problem[] {
  const meant = new Set(problems.flatMap((problem) => (problem.meant === undefined ? [] : [renderPath(problem.meant)])));
  return problems.filter(({ missing }) => missing === undefined || !meant.has(renderPath(missing)));
}

export function isBelow(path: Path, parent: Path): boolean {
  return parent.length <= path.length && parent.every((step, i) => step === path[i]);
}
