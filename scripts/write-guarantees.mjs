/**
 * Writes docs/guarantees.md from test/invariants.ts and the tests that cite them, so that the page cannot promise what no
 * test proves. --check: writes nothing, exits 1 where the page on disk is another.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { importTypeScript } from './import-typescript.mjs';

const root = join(import.meta.dirname, '..');
const page = join(root, 'docs', 'guarantees.md');

const { INVARIANTS } = await importTypeScript(join(root, 'test', 'invariants.ts'));
const cited = findCitations();
const generated = renderPage();
if (process.argv.includes('--check')) {
  if (readFileSync(page, 'utf8') !== generated) {
    console.error('docs/guarantees.md is not what the tests say. Write it: node scripts/write-guarantees.mjs');
    process.exitCode = 1;
  }
} else writeFileSync(page, generated);

/** Invariant → files that cite it with `proves('id', …)`: tests, and journeys that are played at several places. */
function findCitations() {
  const citations = new Map();
  for (const folder of ['src', 'test']) {
    for (const name of readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).sort()) {
      if (!/\.test\.ts$|^journeys\/launch\/.*\.ts$/.test(name)) continue;
      const path = `${folder}/${name.replaceAll('\\', '/')}`;
      const ids = readFileSync(join(root, path), 'utf8').matchAll(/proves\(\s*'([^']+)'/g);
      for (const [, id] of ids) citations.set(id, new Set([...(citations.get(id) ?? []), path]));
    }
  }
  return citations;
}

function renderPage() {
  const lines = [
    '# What Aerie promises',
    '',
    'Each promise in plain words, why it matters, and the tests that prove it. The tests run real programs on real files: the',
    'built command line, the embedded engine on a real model, the lookalike engine with its journal as the judge, SIGKILL, a',
    'full tmpfs, strace. This page is generated from `test/invariants.ts` by `node scripts/write-guarantees.mjs`; a promise that',
    'no test cites fails the tests.',
    '',
    '| promise | why | proved by |',
    '|---|---|---|',
  ];
  for (const [id, { promise, because }] of Object.entries(INVARIANTS)) {
    const tests = [...(cited.get(id) ?? [])].map((path) => `[${path.split('/').at(-1)}](../${path})`).join(', ');
    lines.push(`| \`${id}\`<br>${promise} | ${because} | ${tests || '**nothing**'} |`);
  }
  lines.push(
    '',
    '## How far a kill and a power cut are tested',
    '',
    'A `kill -9` cannot test fsync, because the page cache survives the process. So there are three kinds of test: kills at planted and at',
    'random moments, judged by the journal of the lookalike engine and by a reader that imports nothing from `src/`; one strace test that',
    'for every commit the shard is synced before the ledger, and the ledger before anyone is told; and power cuts, made by',
    'cutting each file of a killed run to the length it had at its last sync.',
    '',
    '## What is not promised',
    '',
    'Network file systems: locks and fsync are not what they say there. Two machines on one run folder. Answers that are the same after a kill as',
    'they would have been without one: the same seed in another batch can give other tokens on any engine.',
    '',
  );
  return lines.join('\n');
}
