/**
 * A small real run on the embedded engine, and its export for every trainer that `aerie export --for` knows: what the
 * trainers' own checks are run on. Nothing is downloaded: the model has random weights.
 *
 * What is in it, and why: several partitions (ids must stay unique over all), conversations of one to three turns, answers
 * cut at the cap (random weights seldom stop), and prompts with what has broken readers: U+2028, U+0085 and form feed
 * (Python's splitlines() takes them for line ends), quotes, emoji, accents, right-to-left text. Random bytes are seldom text,
 * so a history of long answers is tokenised anew and each turn gets its row; partition C has answers of one token, many of
 * which are text, so that there are rows of several turns too.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import { root } from '../ready.mjs';

const MAIN = join(root, 'dist', 'main.js');

const user = (content) => ({ role: 'user', content });
const old = { role: 'assistant', content: 'an old answer' };

const SOURCES = {
  A: [
    [user('hello')],
    [user('the answer'), old, user('and then'), old, user('and at last')],
    [user('a line\u2028separator, a next line\u0085, a form feed \f and a "quote" \\ here')],
    [{ role: 'system', content: 'You are brief.' }, user('one'), old, user('two')],
  ],
  B: [
    [user('hello')], // the same prompt as in A: its id is the same there
    [user('é 漢 😀 שלום'), old, user('again')],
    [{ role: 'system', content: 'Speak in numbers.\n\nOnly.' }, user('three')],
    ...Array.from({ length: 5 }, (_, n) => [user(`question ${n}: the hen and the well`)]),
  ],
  C: Array.from({ length: 8 }, (_, n) => [user(`one word,\u2028please: ${n}`), old, user('and one more')]),
};

/** Whose exports get a draft vocabulary beside them. */
const WITH_VOCABULARY = ['specforge', 'speculators'];

const SAMPLING = { C: { 'max-tokens': 1 } };

/**
 * @param {string} folder empty
 * @returns {Promise<{exports: {target: string, folder: string}[], tokenizer: string}>}
 */
export async function makeTinyExports(folder) {
  const { writeTinyGguf } = await loadTypeScript(join(root, 'test', 'support', 'make-gguf.ts'), folder);
  await writeTinyGguf(join(folder, 'tiny.gguf'), { seed: 1 });
  for (const [name, rows] of Object.entries(SOURCES)) {
    writeFileSync(join(folder, `${name}.jsonl`), rows.map((messages) => `${JSON.stringify({ messages })}\n`).join(''));
  }
  writeFileSync(
    join(folder, 'run.yaml'),
    JSON.stringify({
      run: 'tiny',
      model: 'tiny.gguf',
      servers: [{ engine: 'embedded', flags: { threads: 1, context: 1024, sequences: 4 } }],
      sampling: { temperature: 0.8, 'max-tokens': 96, seed: 11 },
      partitions: Object.keys(SOURCES).map((name) => ({ name, from: `${name}.jsonl`, sampling: SAMPLING[name] })),
    }),
  );
  aerie(['run', 'run.yaml'], folder);
  const exports = [];
  for (const target of await exportTargets()) {
    const to = join(folder, 'exports', target);
    mkdirSync(join(folder, 'exports'), { recursive: true });
    const vocabulary = WITH_VOCABULARY.includes(target) ? ['--draft-vocab', '64'] : [];
    aerie(['export', 'run.yaml', '--for', target, '--to', to, ...vocabulary], folder);
    exports.push({ target, folder: to });
  }
  return { exports, tokenizer: join(folder, 'runs', 'tiny', 'tokenizer') };
}

/** The targets that the code itself knows, so that a new one is checked from its first day. */
async function exportTargets() {
  return (await import(pathToFileURL(join(root, 'dist', 'delivery', 'export-targets.js')).href)).EXPORT_TARGETS;
}

function aerie(args, cwd) {
  const ran = spawnSync(process.execPath, [MAIN, ...args], { cwd, encoding: 'utf8', maxBuffer: 2 ** 26 });
  if (ran.status !== 0)
    throw new Error(`aerie ${args.join(' ')} ended with ${ran.status ?? ran.signal}:\n${ran.stderr}${ran.stdout}`);
  return ran.stdout;
}

/** A test helper in TypeScript without a test runner; Node 20 does not strip types. */
async function loadTypeScript(path, folder) {
  const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
  const { outputText } = ts.transpileModule(readFileSync(path, 'utf8'), { compilerOptions: options });
  const compiled = join(folder, 'helper.mjs');
  writeFileSync(compiled, outputText);
  return import(pathToFileURL(compiled).href);
}
