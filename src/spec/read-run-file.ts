/**
 * The text of a run file → a `RunSpec`, or one error that lists every mistake with its line and column.
 * Promises: all mistakes at once, sorted by place; nothing is started, written or looked up; never any other error.
 * On failure: AerieError `run-file.wrong` with one line of evidence per mistake: `file:line:column  key  sentence`.
 * Mistakes of the YAML itself come alone: until it reads, nobody can say what the keys are.
 */
import { basename } from 'node:path';
import { AerieError } from '../base/errors.ts';
import { crossCheck, silencedBy } from './cross-check.ts';
import { explainIssues } from './explain-issue.ts';
import { isBelow, leaveOutRepeated, type Path, type Problem, renderPath } from './problem.ts';
import { escapeText } from './quote.ts';
import { resolveRun } from './resolve-run.ts';
import type { RunSpec } from './run.ts';
import { runFile } from './run-file.ts';
import { readYaml, type YamlText } from './yaml-text.ts';

/** More lines than this help nobody; the count in the message stays the true one. */
const MOST_LINES = 200;

export function readRunFile(text: string, file: string): RunSpec {
  const yaml = readYaml(text);
  if (!yaml.readable) throw wrong(file, yaml, yaml.problems);
  const shape = explainShape(yaml.value);
  if (shape !== undefined) throw wrong(file, yaml, [{ path: [], at: 'value', message: shape }, ...yaml.problems]);
  const parsed = runFile.safeParse(yaml.value);
  const crossed = crossCheck(yaml.value);
  const silenced = silencedBy(crossed);
  const issues = explainIssues(parsed.error?.issues ?? [], yaml.value);
  const found = leaveOutRepeated([...issues.filter(({ path }) => !isBelowAny(path, silenced)), ...crossed]);
  const problems = [...yaml.problems, ...found.filter(({ path }) => !isBelowAny(path, yaml.broken))];
  if (!parsed.success || problems.length > 0) throw wrong(file, yaml, problems);
  return resolveRun(parsed.data, { file, text });
}

function isBelowAny(path: Path, parents: readonly Path[]): boolean {
  return parents.some((parent) => isBelow(path, parent));
}

/** A file that is not a map has one mistake, and its keys cannot be missing. */
function explainShape(value: unknown): string | undefined {
  if (value === null || value === undefined)
    return 'the file is empty; it needs at least run, model and partitions (aerie init writes one)';
  if (Array.isArray(value)) return 'the file is a list; it must be lines of key: value that begin with run: NAME';
  if (typeof value !== 'object')
    return 'the file is one piece of text; it must be lines of key: value, with a space after each colon';
  return undefined;
}

function wrong(file: string, yaml: YamlText, problems: readonly Problem[]): AerieError {
  const placed = problems.map((problem) => ({ ...yaml.lineAndColumn(problem), problem }));
  placed.sort((a, b) => a.line - b.line || a.column - b.column);
  const lines = placed.map(({ line, column, problem }) => {
    const key = renderPath(problem.path);
    return `${escapeText(file)}:${line}:${column}  ${key === '' ? '' : `${key}  `}${problem.message}`;
  });
  const more = lines.length - MOST_LINES;
  const count = lines.length === 1 ? '1 mistake' : `${lines.length} mistakes`;
  return new AerieError('run-file.wrong', `${escapeText(basename(file))} has ${count}.`, {
    remedy: `Correct ${lines.length === 1 ? 'it' : 'them'} in ${escapeText(file)} and give the same command again. Nothing was started.`,
    evidence: more > 0 ? [...lines.slice(0, MOST_LINES), `… and ${more} more`] : lines,
    facts: { mistakes: lines.length, line: placed[0]?.line ?? 1, column: placed[0]?.column ?? 1 },
  });
}
