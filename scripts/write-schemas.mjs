/**
 * Writes schemas/run.schema.json from the schema in the built code (run `npm run build` before).
 * --check: writes nothing, exits 1 where the file on disk is not the generated one.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { renderRunJsonSchema } from '../dist/spec/run-json-schema.js';

const path = fileURLToPath(new URL('../schemas/run.schema.json', import.meta.url));
const generated = renderRunJsonSchema();
if (process.argv.includes('--check')) {
  if (readOrEmpty(path) !== generated) {
    console.error('schemas/run.schema.json is not what the code generates. Write it: node scripts/write-schemas.mjs');
    process.exitCode = 1;
  }
} else {
  mkdirSync(new URL('../schemas/', import.meta.url), { recursive: true });
  writeFileSync(path, generated);
}

function readOrEmpty(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
