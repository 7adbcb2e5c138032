/**
 * Writes docs/errors/: a page per error code from src/base/error-pages.ts (run `npm run build` before), and a list of them.
 * --check: writes nothing, exits 1 where the folder on disk is another: a page missing, changed, or of a code that is gone.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ERROR_PAGES, renderErrorPage } from '../dist/base/error-pages.js';
import { ERRORS } from '../dist/base/errors.js';

const folder = fileURLToPath(new URL('../docs/errors/', import.meta.url));
const codes = Object.keys(ERROR_PAGES);
const pages = new Map(codes.map((code) => [`${code}.md`, `${renderErrorPage(code)}\n`]));
pages.set('README.md', renderList());

const there = new Map(list().map((name) => [name, readFileSync(`${folder}${name}`, 'utf8')]));
const different = [...new Set([...pages.keys(), ...there.keys()])].filter((name) => pages.get(name) !== there.get(name));
if (!process.argv.includes('--check')) {
  mkdirSync(folder, { recursive: true });
  for (const name of there.keys()) if (!pages.has(name)) rmSync(`${folder}${name}`);
  for (const [name, text] of pages) writeFileSync(`${folder}${name}`, text);
} else if (different.length > 0) {
  console.error(`docs/errors: not what the code says: ${different.join(', ')}. Write it: node scripts/write-errors.mjs`);
  process.exitCode = 1;
}

function renderList() {
  const rows = codes.map((code) => `| [${code}](${code}.md) | ${ERRORS[code].title} |`);
  return ['# Errors', '', '`aerie explain CODE` prints the same page.', '', '| code | |', '|---|---|', ...rows, ''].join('\n');
}

function list() {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
