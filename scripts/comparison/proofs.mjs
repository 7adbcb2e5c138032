/**
 * What may stand as the proof of a row, and whether it is still there: a test by its exact title, a script of package.json,
 * a command line of Aerie with its flags. A title that only stands in a comment, or in a test that is skipped, is no proof.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '@stricli/core';
import ts from 'typescript';
import { application } from '../../dist/cli/application.js';

const root = join(import.meta.dirname, '..', '..');

/** `title` is the text of the test as it is written in `path`, place holders of a table of cases included. */
export const test = (path, title) => ({ kind: 'test', path, title });
/** A script of package.json. */
export const npm = (script) => ({ kind: 'npm', script });
/** A command line of Aerie, as `check RUN --benchmarks FILE`: capital words are what the reader fills in. */
export const aerie = (line) => ({ kind: 'aerie', line });

export function renderProof(proof) {
  if (proof.kind === 'npm') return `\`npm run ${proof.script}\``;
  if (proof.kind === 'aerie') return `\`aerie ${proof.line}\``;
  return `“${proof.title}” in [${proof.path.split('/').at(-1)}](../${proof.path})`;
}

/** What is wrong with a proof, or nothing. */
export async function findFault(proof) {
  if (proof.kind === 'npm') return scripts().has(proof.script) ? undefined : `package.json has no script ${proof.script}`;
  if (proof.kind === 'aerie') return await findFlagFault(proof.line);
  return titlesIn(proof.path).has(proof.title) ? undefined : `${proof.path} has no test “${proof.title}”`;
}

const scripts = () => new Set(Object.keys(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts));

/** A command knows a flag when its own help names it. */
async function findFlagFault(line) {
  const [command, ...rest] = line.split(' ');
  const help = await helpOf(command);
  if (!help.includes(`aerie ${command} `)) return `there is no command aerie ${command}`;
  const missing = rest.filter((word) => word.startsWith('--') && !new RegExp(`${word}(?![a-z-])`).test(help));
  return missing.length === 0 ? undefined : `aerie ${command} has no ${missing.join(' and no ')}`;
}

async function helpOf(command) {
  let said = '';
  const stream = { write: (text) => (said += text), getColorDepth: () => 1 };
  await run(application, [command, '--help'], { process: { stdout: stream, stderr: stream, env: {}, exitCode: null } });
  return said;
}

const read = new Map();

/** The titles of the tests in a file that are run. */
function titlesIn(path) {
  if (read.has(path)) return read.get(path);
  const titles = new Set();
  const visit = (node) => {
    if (ts.isCallExpression(node) && isTest(node.expression))
      for (const argument of node.arguments.slice(0, 2)) if (ts.isStringLiteralLike(argument)) titles.add(argument.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.Latest));
  read.set(path, titles);
  return titles;
}

/** `test(…)`, `it(…)`, `proves(…)` , their tables of cases, and those that only some machines can run; not `test.skip(…)`, not `test.todo(…)`. */
function isTest(callee) {
  if (ts.isIdentifier(callee)) return ['test', 'it', 'proves'].includes(callee.text);
  if (ts.isCallExpression(callee)) return isTest(callee.expression);
  return (
    ts.isPropertyAccessExpression(callee) && ['each', 'skipIf', 'runIf'].includes(callee.name.text) && isTest(callee.expression)
  );
}
