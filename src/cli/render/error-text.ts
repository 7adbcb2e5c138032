/** An error as a person sees it on stderr. */

import type { AerieError } from '../../base/errors.ts';
import { stderrColour as pc } from './colour.ts';

/** On a terminal the last line says where more is; in a log it would only be noise. */
export function renderErrorText(error: AerieError, isTerminal = false): string {
  const { because, evidence, remedy } = error.detail;
  const lines = [`${pc.red('error')}    ${error.code}`, ...indent(error.message)];
  if (because !== undefined) lines.push(...labelled('because', because));
  for (const [at, line] of (evidence ?? []).entries())
    lines.push(at === 0 ? `${pc.dim('evidence')} ${line}` : `         ${line}`);
  lines.push(...labelled('try', remedy));
  if (isTerminal) lines.push(...labelled('more', `aerie explain ${error.code}`));
  return `${lines.join('\n')}\n`;
}

/** A bug has a stack, because its reader is an author. */
export function renderBugText(thrown: unknown): string {
  const stack = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  return [
    `${pc.red('error')}    bug`,
    ...indent('Aerie met something it did not expect. What is committed on disk is safe; the same command resumes.'),
    ...indent(stack),
    ...labelled('try', 'Please report it with the lines above.'),
    '',
  ].join('\n');
}

function indent(text: string): string[] {
  return text.split('\n').map((line) => `         ${line}`);
}

function labelled(label: string, text: string): string[] {
  const [first = '', ...rest] = text.split('\n');
  return [`${pc.dim(label.padEnd(8))} ${first}`, ...rest.map((line) => `         ${line}`)];
}
