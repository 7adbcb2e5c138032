/**
 * `npm test`: installs what is missing, builds, gets the default model where it can be had, and runs every test.
 * Arguments go to vitest. The last line counts the tests: `N passed, N failed, N skipped`.
 * AERIE_REQUIRE_ALL=1 (CI): a test that would be skipped for want of the model, strace or a mount fails instead.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, install, root } from './ready.mjs';

install();
build();
const env = { ...process.env };
if (!env.AERIE_TEST_MODEL) {
  const model = spawnSync(process.execPath, [join(root, 'dist', 'programs', 'fetch-model.js')], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (model.status === 0) env.AERIE_TEST_MODEL = model.stdout.trim();
  else console.error('the default model cannot be had: tests that need it are skipped');
}
const folder = mkdtempSync(join(tmpdir(), 'aerie-test-report-'));
const report = join(folder, 'report.json');
const vitest = join(root, 'node_modules', 'vitest', 'vitest.mjs');
const args = [vitest, 'run', '--reporter=default', '--reporter=json', `--outputFile.json=${report}`, ...process.argv.slice(2)];
const ran = spawnSync(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
let counts = { numPassedTests: 0, numFailedTests: 1, numPendingTests: 0, numTodoTests: 0 };
try {
  counts = JSON.parse(readFileSync(report, 'utf8'));
} catch {
  console.error('vitest wrote no report');
}
rmSync(folder, { recursive: true, force: true });
process.exitCode = ran.status ?? 1;
console.log(
  `${counts.numPassedTests} passed, ${counts.numFailedTests} failed, ${counts.numPendingTests + counts.numTodoTests} skipped`,
);
