/**
 * srun, squeue and scancel over a folder, for machines where no Slurm runs: `AERIE_FAKE_SLURM=FOLDER node fake-slurm.mjs srun …`.
 * A job is a real process in a session of its own below a step daemon, which outlives a srun that is killed; its output goes
 * through srun and is lost with it, as Slurm's is. Options and formats are those of Slurm 22.05 that are asked for here; others are refused.
 *
 * What it is not: no controller, no accounting, no other node. In the folder `node` is the name that the one node has, `full` has
 * jobs wait in the queue, `controller` with `down` has nobody answer, `apart` is an address that stands for 0.0.0.0 in the words of a task,
 * as on a node whose loopback is not ours; `cancel.json` of a job ends it, with the words of slurmstepd and srun.
 */
import { spawn } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { constants, hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const folder = process.env['AERIE_FAKE_SLURM'] ?? '';
const jobs = join(folder, 'jobs');
mkdirSync(jobs, { recursive: true });
const [program, ...words] = process.argv.slice(2);

const pathOf = (id, name) => join(jobs, String(id), name);
const read = (id, name) => {
  try {
    return JSON.parse(readFileSync(pathOf(id, name), 'utf8'));
  } catch {
    return undefined; // not yet
  }
};
const write = (id, name, value) => {
  writeFileSync(pathOf(id, `${name}.new`), JSON.stringify(value));
  renameSync(pathOf(id, `${name}.new`), pathOf(id, name));
};
const fail = (text, code = 1) => {
  process.stderr.write(`${program}: error: ${text}\n`);
  process.exit(code);
};
const nodeName = () =>
  existsSync(join(folder, 'node')) ? readFileSync(join(folder, 'node'), 'utf8').trim() : hostname().split('.')[0];
const living = () =>
  readdirSync(jobs)
    .map(Number)
    .sort((a, b) => a - b)
    .map((id) => ({ id, ...read(id, 'asked.json'), task: read(id, 'task.json'), end: read(id, 'end.json') }))
    .filter(({ end }) => end === undefined);

/** Options up to the program; a name alone takes no word. */
function options(args, known) {
  const found = {};
  let at = 0;
  for (; at < args.length && args[at].startsWith('-'); at += 1) {
    const [, name, , value] = /^--?([\w-]+)(=(.*))?$/s.exec(args[at]) ?? [];
    if (!(name in known)) fail(`unrecognized option '${args[at]}'`);
    if (value === undefined && known[name]) at += 1;
    found[name] = value ?? (known[name] ? args[at] : true);
  }
  return { found, rest: args.slice(at) };
}

async function srun() {
  const { found, rest } = options(words, {
    ...{ 'job-name': true, nodes: true, ntasks: true, gpus: true, export: true, N: true, n: true, partition: true },
    ...{ unbuffered: false, 'kill-on-bad-exit': false },
  });
  const id = 100 + readdirSync(jobs).length;
  mkdirSync(pathOf(id, ''));
  const env = exported(found.export ?? 'ALL');
  write(id, 'asked.json', {
    name: found['job-name'] ?? rest[0],
    words: rest,
    env: { ...env, SLURM_JOB_ID: String(id) },
    options: found,
  });
  writeFileSync(pathOf(id, 'output'), '');
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => end(id, 'SIGKILL')); // srun forces an end
  if (existsSync(join(folder, 'full'))) process.stderr.write(`srun: job ${id} queued and waiting for resources\n`);
  while (existsSync(join(folder, 'full')) && read(id, 'end.json') === undefined) {
    if (read(id, 'cancel.json') !== undefined) {
      write(id, 'end.json', { code: 1 });
      process.stderr.write(`srun: Force Terminated job ${id}\nsrun: error: Job allocation ${id} has been revoked\n`);
    }
    await delay(50);
  }
  if (read(id, 'end.json') === undefined)
    spawn(process.execPath, [fileURLToPath(import.meta.url), 'stepd', String(id)], {
      env: { AERIE_FAKE_SLURM: folder },
      detached: true,
      stdio: 'ignore',
    }).unref();
  process.exitCode = await tell(id);
}

function exported(list) {
  if (list === 'NONE') return { PATH: process.env['PATH'] };
  const parts = list.split(',');
  const named = parts
    .filter((part) => part !== 'ALL')
    .map((part) => (part.includes('=') ? part.split(/=(.*)/s, 2) : [part, process.env[part]]));
  return { ...(parts.includes('ALL') ? process.env : { PATH: process.env['PATH'] }), ...Object.fromEntries(named) };
}

/** What the task writes, as it comes; then its exit status. */
async function tell(id) {
  const file = openSync(pathOf(id, 'output'), 'r');
  const bytes = Buffer.alloc(65_536);
  let isAborted = false;
  for (;;) {
    const over = read(id, 'end.json');
    for (let length = readSync(file, bytes); length > 0; length = readSync(file, bytes))
      process.stdout.write(Buffer.from(bytes.subarray(0, length)));
    if (over !== undefined) return over.code;
    if (!isAborted && read(id, 'cancel.json') !== undefined && read(id, 'task.json') !== undefined) {
      isAborted = true;
      process.stderr.write('srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n');
    }
    await delay(20);
  }
}

/** The step daemon: the parent of the task, whoever of srun lives. */
async function stepd() {
  const [id] = words;
  const { words: command, env } = read(id, 'asked.json');
  const output = openSync(pathOf(id, 'output'), 'a');
  const apart = existsSync(join(folder, 'apart')) ? readFileSync(join(folder, 'apart'), 'utf8').trim() : '';
  const args = command.slice(1).map((word) => (apart !== '' && word === '0.0.0.0' ? apart : word));
  const task = spawn(command[0], args, { env, detached: true, stdio: ['ignore', output, output] });
  task.on('error', (error) => {
    appendFileSync(pathOf(id, 'output'), `slurmstepd: error: execve(): ${command[0]}: ${error.message}\n`);
    write(id, 'end.json', { code: 2 });
  });
  task.on('spawn', () => write(id, 'task.json', { pid: task.pid }));
  void obeyCancel(id, () => task.exitCode === null && task.signalCode === null);
  task.on('exit', (code, signal) => {
    signalAll(task.pid, 'SIGKILL'); // what a task leaves ends with its step
    write(id, 'end.json', { code: code ?? 128 + constants.signals[signal] });
  });
}

/** SIGTERM, and SIGKILL 30 s later where it still runs (KillWait). */
async function obeyCancel(id, isRunning) {
  while (isRunning() && read(id, 'cancel.json') === undefined) await delay(50);
  if (!isRunning()) return;
  const { because } = read(id, 'cancel.json');
  const why = because === '' ? '' : ` DUE TO ${because}`;
  const at = new Date().toISOString().slice(0, 19);
  appendFileSync(pathOf(id, 'output'), `slurmstepd: error: *** STEP ${id}.0 ON ${nodeName()} CANCELLED AT ${at}${why} ***\n`);
  end(id, 'SIGTERM');
  for (let left = 600; left > 0 && isRunning(); left -= 1) await delay(50);
  end(id, 'SIGKILL');
}

function signalAll(pid, signal) {
  try {
    process.kill(-pid, signal);
  } catch {
    // it has ended meanwhile
  }
}

function end(id, signal) {
  const pid = read(id, 'task.json')?.pid;
  if (pid !== undefined) signalAll(pid, signal);
  else if (signal === 'SIGKILL' && read(id, 'end.json') === undefined) write(id, 'end.json', { code: 1 });
}

function squeue() {
  const { found } = options(words, { h: false, s: false, n: true, u: true, o: true });
  for (const { id, name, task } of living()) {
    if (found.n !== undefined && name !== found.n) continue;
    if (found.s === true && task === undefined) continue;
    const isWaiting = task === undefined;
    const cells = {
      ...{ i: found.s === true ? `${id}.0` : id, j: name, N: isWaiting ? '' : nodeName() },
      ...{ T: isWaiting ? 'PENDING' : 'RUNNING', r: isWaiting ? 'Resources' : 'None' },
    };
    process.stdout.write(`${found.o.replace(/%(\w)/g, (_, letter) => cells[letter] ?? fail(`no format %${letter}`))}\n`);
  }
}

function scancel() {
  const { found, rest } = options(words, { signal: true });
  for (const word of rest) {
    const job = living().find(({ id }) => id === Number.parseInt(word, 10));
    if (job === undefined) fail(`Kill job error on job id ${word}: Invalid job id specified`);
    end(job.id, found.signal === undefined ? 'SIGKILL' : `SIG${found.signal}`);
  }
}

const isDown = existsSync(join(folder, 'controller')) && readFileSync(join(folder, 'controller'), 'utf8') === 'down';
if (isDown && program === 'squeue') {
  process.stderr.write('slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n');
  process.exit(1);
}
if (isDown && program === 'srun') fail('Unable to allocate resources: Unable to contact slurm controller (connect failure)');
if (isDown && program === 'scancel') fail('Unable to contact slurm controller (connect failure)');
await { srun, stepd, squeue, scancel }[program]();
