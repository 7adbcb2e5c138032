/**
 * Checks the rings. Beyond the rules themselves it fails when a folder of src/ is in no ring, and when the tool saw fewer
 * modules than there are files: a boundary checker that sees nothing is always green.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const { rings, forbidden, options } = createRequire(import.meta.url)('../.dependency-cruiser.cjs');

const folders = readdirSync(join(root, 'src'), { withFileTypes: true }).filter((entry) => entry.isDirectory());
const unlisted = folders.map(({ name }) => name).filter((name) => !rings.flat().includes(name));
if (unlisted.length > 0)
  fail(`in no ring: ${unlisted.map((name) => `src/${name}`).join(', ')}; add it to rings in .dependency-cruiser.cjs`);

const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
const config = join(tmpdir(), `aerie-boundaries-${process.pid}.json`);
writeFileSync(config, JSON.stringify({ forbidden, options }));
let report;
try {
  const binary = join(root, 'node_modules', 'dependency-cruiser', 'bin', 'dependency-cruise.mjs');
  const output = execFileSync(process.execPath, [binary, 'src', '--config', config, '--output-type', 'json'], {
    cwd: root,
    maxBuffer: 2 ** 28,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  report = JSON.parse(output);
} catch (thrown) {
  if (!thrown.stdout?.length) throw thrown;
  report = JSON.parse(thrown.stdout);
} finally {
  rmSync(config, { force: true });
}

const seen = report.modules.filter(({ source }) => /^src\/.*\.ts$/.test(source)).length;
if (seen < files.length) fail(`the tool saw ${seen} modules of src/, there are ${files.length}: its green would mean nothing`);
const { violations } = report.summary;
for (const { rule, from, to } of violations) console.error(`${rule.name}: ${from} → ${to}`);
if (violations.length > 0) fail(`${violations.length} imports cross a boundary`);
console.log(`boundaries: ${seen} modules, ${report.summary.totalDependenciesCruised} imports, none crosses a ring`);

function fail(message) {
  console.error(`boundaries: ${message}`);
  process.exit(1);
}
