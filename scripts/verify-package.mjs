/**
 * `npm run verify:package`: what people get. Packs Aerie, installs the tarball in an empty folder, and uses it there as a stranger
 * would: help, doctor, explain, a run against the shipped lookalike, the library with its types, and the embedded engine
 * without its package (a clear error) and with it. Needs the package registry; says aloud what could not be tried. Exit 1 at the
 * first thing that is not as promised, with the folder kept.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const root = join(import.meta.dirname, '..');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const work = mkdtempSync(join(tmpdir(), 'aerie-package-'));
const app = join(work, 'app');
const engineVersion = manifest.peerDependencies['node-llama-cpp'];

const tarball = pack();
prepareFolder();
step('npm install of the tarball', () => npm(['install', '--save', tarball]));
step('no engine comes with it', () =>
  expect(!existsSync(join(app, 'node_modules', 'node-llama-cpp')), 'node-llama-cpp is there'),
);
tryCommands();
await tryLookalike();
tryLibrary();
tryEngine();
rmSync(work, { recursive: true, force: true });
console.log(`verify:package: all of it works on ${process.platform} ${process.arch}, node ${process.versions.node}`);

function pack() {
  const output = execFileSync('npm', ['pack', '--json', '--pack-destination', work], {
    ...{ cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] },
  });
  const [packed] = JSON.parse(output.slice(output.indexOf('[')));
  console.log(`packed ${packed.filename}: ${packed.entryCount} files, ${packed.size} bytes, ${packed.unpackedSize} unpacked`);
  return join(work, packed.filename);
}

/** The engine's binaries for graphics cards (some 500 MB) are not what is tried here: empty packages stand for them. */
function prepareFolder() {
  mkdirSync(join(app, 'empty'), { recursive: true });
  write('empty/package.json', { name: 'empty', version: '0.0.0' });
  const heavy = Object.keys(manifest.overrides).map((name) => [name, 'file:./empty']);
  write('package.json', { name: 'stranger', private: true, type: 'module', overrides: Object.fromEntries(heavy) });
  write('prompts.jsonl', `${JSON.stringify({ prompt: 'What is rain?' })}\n`);
}

function tryCommands() {
  step('npx aerie --help', () => expectMatch(aerie(['--help'], 0), /aerie run/));
  step('npx aerie --version', () => expectMatch(aerie(['--version'], 0), new RegExp(`^${manifest.version}`)));
  step('npx aerie explain', () => expectMatch(aerie(['explain', 'engine.missing'], 0), /npm install node-llama-cpp@/));
  step('npx aerie doctor, without the engine', () => {
    const { checks } = JSON.parse(aerie(['doctor', '--json'], 0)).data;
    expectMatch(JSON.stringify(checks.find(({ name }) => name === 'embedded engine')), /"verdict":"warning".*not installed/);
  });
  step('a run with the embedded engine, which is not there', () => {
    runFile('embedded.yaml', { model: 'default' });
    const { error } = JSON.parse(aerie(['run', 'embedded.yaml', '--json'], 3));
    expectMatch(error.code + error.remedy, new RegExp(`^engine\\.missing.*npm install node-llama-cpp@${engineVersion}`));
    expect(!existsSync(join(app, 'runs')), 'a run folder was made');
  });
}

async function tryLookalike() {
  const portFile = join(app, 'port');
  const program = join(app, 'node_modules', 'aerie', 'dist', 'programs', 'lookalike-engine.js');
  const args = [program, '--port', '0', '--port-file', portFile, '--lifeline'];
  const engine = spawn(process.execPath, args, { cwd: app, stdio: ['pipe', 'ignore', 'inherit'] });
  try {
    for (let waited = 0; !existsSync(portFile) && waited < 600; waited += 1) await delay(100);
    const port = Number(readFileSync(portFile, 'utf8'));
    runFile('run.yaml', { model: 'lookalike', servers: [{ engine: 'vllm', attach: `http://127.0.0.1:${port}` }] });
    step('a run against the shipped lookalike', () => expectMatch(aerie(['run', 'run.yaml', '--json'], 0), /"done":1/));
  } finally {
    engine.kill('SIGTERM');
  }
  step('check and export of that run', () => {
    aerie(['check', 'run.yaml'], 0);
    aerie(['export', 'run.yaml', '--for', 'specforge'], 0);
    expect(existsSync(join(app, 'runs', 'run', 'export', 'specforge')), 'no export folder');
  });
}

function tryLibrary() {
  write(
    'library.mjs',
    "import { nodeHost, runRun, runStatus } from 'aerie';\nif (typeof runRun !== 'function') throw new Error('no runRun');\n" +
      'const nothing = () => undefined;\nconst signal = new AbortController().signal;\n' +
      'const context = { host: nodeHost(), onEvent: nothing, onNote: nothing, onProgress: nothing, drain: signal, abort: signal };\n' +
      "console.log((await runStatus({ run: 'run.yaml' }, context)).isFinished);\n",
  );
  step("import { runRun } from 'aerie'", () => expectMatch(node(['library.mjs']), /^true/));
  write(
    'typed.ts',
    "import { AerieError, type OperationContext, type RunReport, runRun } from 'aerie';\n" +
      "export const go = (context: OperationContext): Promise<RunReport> => runRun({ run: 'run.yaml' }, context);\n" +
      '// @ts-expect-error: the types are really there, not any\nexport const wrong = (context: OperationContext) => runRun({ file: 1 }, context);\n' +
      'export const codeOf = (error: AerieError): string => error.code;\n',
  );
  write('tsconfig.json', {
    compilerOptions: { ...{ module: 'nodenext', strict: true, noEmit: true }, types: ['node'], skipLibCheck: false },
  });
  const { typescript, '@types/node': types } = manifest.devDependencies;
  step('npm install of the type checker', () =>
    npm(['install', '--save-dev', `typescript@${typescript}`, `@types/node@${types}`]),
  );
  step('the types resolve under nodenext', () => node([join('node_modules', 'typescript', 'bin', 'tsc'), '-p', '.']));
  step('the schema is exported', () =>
    expectMatch(
      node(['--input-type=module', '-e', "console.log(import.meta.resolve('aerie/schemas/run.schema.json'))"]),
      /run\.schema\.json/,
    ),
  );
}

function tryEngine() {
  step('npm install of the engine', () => npm(['install', '--save', `node-llama-cpp@${engineVersion}`]));
  step('npx aerie doctor, with the engine', () => {
    const { checks } = JSON.parse(aerie(['doctor', '--json'], 0)).data;
    expectMatch(JSON.stringify(checks.find(({ name }) => name === 'embedded engine')), /"verdict":"ok"/);
  });
  const fetched = spawnSync(process.execPath, [join('node_modules', 'aerie', 'dist', 'programs', 'fetch-model.js')], {
    cwd: app,
    encoding: 'utf8',
  });
  if (fetched.status !== 0)
    return console.log(`NOT TRIED: a run on the embedded engine, because its model cannot be had\n${fetched.stderr}`);
  step('a run with the embedded engine', () => expectMatch(aerie(['run', 'embedded.yaml', '--json'], 0), /"done":1/));
}

function step(name, action) {
  const startedMs = performance.now();
  try {
    action();
  } catch (thrown) {
    console.error(`NOT AS PROMISED: ${name}\n${thrown.message}\nkept for a look: ${work}`);
    process.exit(1);
  }
  console.log(`ok  ${name}  (${((performance.now() - startedMs) / 1000).toFixed(1)} s)`);
}

/** stdout of a command of the installed package; any other exit code throws. */
function aerie(args, code) {
  const ran = spawnSync('npx', ['--no-install', 'aerie', ...args], { cwd: app, encoding: 'utf8' });
  if (ran.status !== code)
    throw new Error(`aerie ${args.join(' ')} ended with ${ran.status}, not ${code}:\n${ran.stdout}${ran.stderr}`);
  return ran.stdout;
}

function node(args) {
  const ran = spawnSync(process.execPath, args, { cwd: app, encoding: 'utf8' });
  if (ran.status !== 0) throw new Error(`${ran.stdout}${ran.stderr}`);
  return ran.stdout;
}

function npm(args) {
  const ran = spawnSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], { cwd: app, encoding: 'utf8' });
  if (ran.status !== 0) throw new Error(`npm ${args.join(' ')}:\n${ran.stdout}${ran.stderr}`);
}

function runFile(name, over) {
  const run = {
    run: name.replace('.yaml', ''),
    sampling: { 'max-tokens': 8 },
    partitions: [{ name: 'B1', from: 'prompts.jsonl' }],
  };
  write(name, { ...run, ...over });
}

function write(name, content) {
  writeFileSync(join(app, name), typeof content === 'string' ? content : `${JSON.stringify(content, undefined, 2)}\n`);
}

function expect(holds, message) {
  if (!holds) throw new Error(message);
}

function expectMatch(text, pattern) {
  expect(pattern.test(text), `expected ${pattern} in:\n${text.slice(0, 2000)}`);
}
