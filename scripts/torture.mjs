/**
 * `npm run torture -- [--kills 1000] [--minutes 60] [--seed 20261] [--result FILE] [--fresh] [--write]`: kills Aerie and its engines a
 * thousand times and counts what is lost. What it does is in test/torture/, on the judge and the bench of the crash tests.
 */
import { existsSync } from 'node:fs';
import { register } from 'node:module';

if (!existsSync(new URL('../dist/main.js', import.meta.url))) {
  console.error('Build first: npm run build');
  process.exit(2);
}
register('./typescript-hooks.mjs', import.meta.url);
const { torture } = await import('../test/torture/torture.ts');
process.exitCode = await torture(process.argv.slice(2));
