/** What both README commands need first: the packages of the lock file, and a build. Each is skipped where it is done. */
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, statSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..');

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  console.error(`Aerie needs Node 20.19 or newer; this is ${process.versions.node}. Nothing was installed.`);
  process.exit(3);
}

/** `npm ci` where the lock file is newer than what is installed, or nothing is; never where `node_modules` is a link. */
export function install() {
  // A link leads to the packages of another checkout: npm ci would empty that one's folder under whoever works there.
  if (lstatSync(join(root, 'node_modules'), { throwIfNoEntry: false })?.isSymbolicLink()) return;
  const installed = join(root, 'node_modules', '.package-lock.json');
  const lock = join(root, 'package-lock.json');
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  console.error('installing packages (npm ci)');
  execFileSync('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

export function build() {
  execFileSync(process.execPath, [join(root, 'scripts', 'build.mjs')], { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
}
