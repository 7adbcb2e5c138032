/**
 * `npm run verify:trainers`: the trainers' own word on what `aerie export` writes. A small real run is made, exported for
 * every target, and read by code that Aerie did not write; docs/trainers.md says what each check proves.
 *
 *   --full      also import the packages whole (torch, 1 to 3 GB into the cache; or name a Python that has it:
 *               AERIE_TRAINERS_PYTHON)
 *   --offline   only the reader that needs nothing but Python
 *   --latest    the newest published packages instead of the pinned ones
 *   --keep      keep the run and its exports, and say where
 *
 * Checkouts come first where named: SPECFORGE_DIR, SPECULATORS_DIR, MODELOPT_DIR, AUTOMODEL_DIR.
 * Exit 1 when a check that ran failed. What cannot be had (Python, the package index) is said and skipped; with
 * AERIE_REQUIRE_ALL=1 the offline reader must run.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, install, root } from './ready.mjs';
import { cacheFolder, findTrainers, libraries } from './trainers/packages.mjs';

const options = new Set(process.argv.slice(2));
const known = ['--full', '--offline', '--latest', '--keep'];
const unknown = [...options].filter((option) => !known.includes(option));
if (unknown.length > 0) {
  console.error(`verify:trainers does not know ${unknown.join(' ')}; it knows ${known.join(' ')}`);
  process.exit(2);
}
const full = options.has('--full');
const say = (line) => console.error(line);

install();
build();
const { makeTinyExports } = await import('./trainers/tiny-exports.mjs'); // needs the packages that install() brings
const folder = mkdtempSync(join(tmpdir(), 'aerie-trainers-'));
try {
  process.exitCode = await verify();
} finally {
  if (options.has('--keep')) say(`kept: ${folder}`);
  else rmSync(folder, { recursive: true, force: true });
}

async function verify() {
  const python = findPython();
  if (python === undefined) {
    say('no Python 3.9 or newer here: no trainer was asked. Install python3 and python3-pip.');
    return process.env['AERIE_REQUIRE_ALL'] === '1' ? 1 : 0;
  }
  say('a small run on the embedded engine, and its exports');
  const made = await makeTinyExports(folder);
  const job = { exports: made.exports, tokenizer: made.tokenizer, scratch: join(folder, 'scratch') };
  const verdicts = [];
  if (options.has('--offline')) verdicts.push(...ask(python, 'offline', job));
  else {
    say(`the trainers' packages (cache: ${cacheFolder})`);
    job.packages = findTrainers({ python, latest: options.has('--latest'), say });
    const own = process.env['AERIE_TRAINERS_PYTHON'];
    verdicts.push(...ask(own || python, 'light', job, own ? undefined : libraries({ python, full: false, say })));
    if (full) verdicts.push(...ask(own || python, 'full', job, own ? undefined : libraries({ python, full, say })));
  }
  printTable(verdicts);
  const failed = verdicts.filter(({ verdict }) => verdict === 'failed');
  const read = verdicts.some(({ trainer, verdict }) => trainer === 'formats reader' && verdict === 'ok');
  return failed.length > 0 || !read ? 1 : 0;
}

function findPython() {
  const isNewEnough = ['-c', 'import sys; sys.exit(sys.version_info < (3, 9))'];
  return ['python3', 'python'].find((name) => spawnSync(name, isNewEnough).status === 0);
}

/** Runs the Python half; its verdicts, or one that says how it ended. */
function ask(python, part, job, libraryFolder) {
  const env = { ...process.env, HF_HOME: join(folder, 'hf'), HF_HUB_OFFLINE: '1', PYTHONDONTWRITEBYTECODE: '1' };
  if (libraryFolder !== undefined) env['PYTHONPATH'] = libraryFolder;
  const ran = spawnSync(python, [join(root, 'scripts', 'verify_trainers.py'), part], {
    input: JSON.stringify(job),
    encoding: 'utf8',
    env,
    maxBuffer: 2 ** 28,
  });
  const verdicts = ran.stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
  if (ran.status !== 0) {
    const detail = ran.stderr.trim().split('\n').slice(-3).join(' ') || `ended with ${ran.status ?? ran.signal}`;
    verdicts.push({ trainer: `(${part})`, check: 'the Python half', rows: 0, verdict: 'failed', how: '', detail });
  }
  return verdicts;
}

function printTable(verdicts) {
  const cells = [
    ['trainer', 'check', 'rows', 'verdict', 'how it was run'],
    ...verdicts.map(({ trainer, check, rows, verdict, how }) => [trainer, check, String(rows), verdict, how || '-']),
  ];
  const widths = cells[0].map((_, column) => Math.max(...cells.map((row) => row[column].length)));
  for (const row of cells)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column]))
        .join('  ')
        .trimEnd(),
    );
  for (const { trainer, check, verdict, detail } of verdicts) {
    if (verdict !== 'ok') console.log(`${verdict}: ${trainer}, ${check}: ${detail}`);
  }
  const count = (wanted) => verdicts.filter(({ verdict }) => verdict === wanted).length;
  console.log(`trainers: ${count('ok')} ok, ${count('failed')} failed, ${count('skipped')} skipped`);
}
