/**
 * The trainers' published packages, unpacked into a cache: only their own files, without what they depend on (torch and all
 * that follows). A checkout named by an environment variable comes first. What cannot be had is said, never guessed.
 *
 * The versions are pinned, so that a red check means that Aerie changed; `--latest` asks what the trainers say today.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

export const TRAINERS = [
  { name: 'SpecForge', package: 'specforge', version: '0.2.0', checkout: 'SPECFORGE_DIR' },
  { name: 'speculators', package: 'speculators', version: '0.9.0', checkout: 'SPECULATORS_DIR' },
  { name: 'Model-Optimizer', package: 'nvidia-modelopt', version: '0.47.0', checkout: 'MODELOPT_DIR' },
  { name: 'Automodel', package: 'nemo-automodel', version: '0.7.0', checkout: 'AUTOMODEL_DIR' },
];

/** What reads files for three of the four. */
const LIGHT = ['datasets==5.2.0'];
/** torch is 1 to 3 GB: never in CI. The rest is what the four packages import when they read data. */
const FULL = [
  ...LIGHT,
  ...['torch==2.15.0', 'transformers==5.24.0'],
  ...['omegaconf', 'scipy', 'pulp', 'ninja', 'nvidia-ml-py', 'rich', 'pydantic', 'regex', 'setuptools'], // Model-Optimizer
  ...['loguru', 'aiohttp', 'openai', 'pydantic-settings', 'psutil', 'protobuf', 'typer'], // speculators
  ...['torchdata', 'tiktoken'], // Automodel
];

/** Longest that one download may take before it is given up: pip itself gives up on a dead index within half a minute. */
const LIGHT_MS = 120_000;
const FULL_MS = 3_600_000;

export const cacheFolder = join(
  process.env['AERIE_CACHE'] || join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'aerie'),
  'trainers',
);

/**
 * @param {{python: string, latest: boolean, say: (line: string) => void}} options
 * @returns {Record<string, {folder: string, how: string}[]>} by trainer; an empty list where nothing can be had
 */
export function findTrainers({ python, latest, say }) {
  const found = {};
  for (const trainer of TRAINERS) {
    found[trainer.name] = [];
    const checkout = process.env[trainer.checkout];
    if (checkout) found[trainer.name].push({ folder: resolve(checkout), how: `checkout ${commitOf(checkout)}` });
    const unpacked = unpackPackage({ python, trainer, latest, say });
    if (unpacked !== undefined) found[trainer.name].push(unpacked);
  }
  return found;
}

function unpackPackage({ python, trainer, latest, say }) {
  const wanted = latest ? trainer.package : `${trainer.package}==${trainer.version}`;
  const kept = join(cacheFolder, `${trainer.package}-${trainer.version}`);
  if (!latest && existsSync(kept)) return { folder: kept, how: `${trainer.package} ${trainer.version}` };
  const partial = freshFolder(join(cacheFolder, `${trainer.package}.partial`));
  const args = ['download', '--no-deps', '--only-binary', ':all:', '--ignore-requires-python', '--dest', partial, wanted];
  const problem = pip(python, args, LIGHT_MS);
  const wheel = problem === undefined ? readdirSync(partial).find((name) => name.endsWith('.whl')) : undefined;
  if (wheel === undefined) {
    say(`${trainer.name}: ${wanted} cannot be had from the package index: ${problem ?? 'it serves no wheel'}`);
    rmSync(partial, { recursive: true, force: true });
    return undefined;
  }
  const version = wheel.split('-')[1];
  const folder = join(cacheFolder, `${trainer.package}-${version}`);
  if (!existsSync(folder)) {
    const unpacking = freshFolder(`${folder}.partial`);
    const unzipped = spawnSync(python, ['-m', 'zipfile', '-e', join(partial, wheel), unpacking], { encoding: 'utf8' });
    if (unzipped.status !== 0) throw new Error(`${wheel} cannot be unpacked: ${unzipped.stderr}`);
    renameSync(unpacking, folder);
  }
  rmSync(partial, { recursive: true, force: true });
  return { folder, how: `${trainer.package} ${version}` };
}

/** Python packages in a folder of their own (no venv: Debian ships Python without it) → PYTHONPATH, or undefined. */
export function libraries({ python, full, say }) {
  const wanted = full ? FULL : LIGHT;
  const version = spawnSync(python, ['-c', 'import sys; print("%d.%d" % sys.version_info[:2])'], { encoding: 'utf8' });
  const folder = join(cacheFolder, `${full ? 'full' : 'light'}-python${version.stdout.trim()}`);
  if (existsSync(folder)) return folder;
  if (full) say('full: installing torch and transformers into the cache, 1 to 3 GB');
  const partial = freshFolder(`${folder}.partial`);
  const args = ['install', '--target', partial, '--only-binary', ':all:', ...wanted];
  const problem = pip(python, args, full ? FULL_MS : LIGHT_MS);
  if (problem !== undefined) {
    say(`${wanted.join(' ')} cannot be had from the package index: ${problem}`);
    rmSync(partial, { recursive: true, force: true });
    return undefined;
  }
  renameSync(partial, folder);
  return folder;
}

/** What pip says of an index that does not answer, as against one that does not serve a package. */
const UNREACHABLE = /connection broken|ConnectionError|timed? ?out|Name or service not known|name resolution/i;
let isUnreachable = false;

/** Returns pip's last words where it failed. An index that did not answer is not asked again: each try takes half a minute. */
function pip(python, args, timeout) {
  if (isUnreachable) return 'it could not be reached before';
  const all = ['-m', 'pip', '--quiet', '--disable-pip-version-check', '--retries', '1', '--timeout', '15', ...args];
  const ran = spawnSync(python, all, { encoding: 'utf8', timeout });
  if (ran.status === 0) return undefined;
  isUnreachable = ran.error !== undefined || UNREACHABLE.test(ran.stderr);
  if (isUnreachable) return `it cannot be reached (${ran.error?.message ?? ran.stderr.trim().split('\n').at(-1)})`;
  return ran.stderr.trim().split('\n').at(-1) || `pip ended with ${ran.status}`;
}

function freshFolder(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  return folder;
}

function commitOf(folder) {
  const ran = spawnSync('git', ['-C', folder, 'rev-parse', '--short=12', 'HEAD'], { encoding: 'utf8' });
  return ran.status === 0 ? ran.stdout.trim() : '(no commit known)';
}
