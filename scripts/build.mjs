/** Builds `dist/` with plain tsc, and the schemas from it. Nothing is done when no source is newer than the last build. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const stamp = join(root, 'dist', '.built');

function newest(folder) {
  return readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile())
    .reduce((latest, entry) => Math.max(latest, statSync(join(entry.parentPath, entry.name)).mtimeMs), 0);
}

const sources = Math.max(
  newest(join(root, 'src')),
  statSync(join(root, 'tsconfig.build.json')).mtimeMs,
  statSync(join(root, 'package.json')).mtimeMs,
);
if (!existsSync(stamp) || statSync(stamp).mtimeMs < sources) {
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  execFileSync(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', 'tsconfig.build.json'], {
    cwd: root,
    stdio: 'inherit',
  });
  writeFileSync(stamp, '');
}
