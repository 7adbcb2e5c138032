/**
 * Proves on a machine with a GPU that Aerie names who holds its memory, ends it by identity, and sees the memory come back.
 *
 *   node scripts/prove-gpu.mjs [FOLDER] [--in-sh]      gpu-proof.md and gpu-proof.json go to FOLDER, else $OUT, else here
 *
 * Twice: a launch of Aerie's own that ignores SIGTERM, and a process that Aerie did not start. Each takes 10 GiB through the driver
 * (`hold-gpu-memory.py`). Needs: nvidia-smi, python3, Node 20 or later, this folder, dist/ (machine, host, server, base) and
 * node_modules with execa and what it needs. Exit 0: proven. 1: not, and the report says where. 3: no GPU here, or no python3.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { quoteShell } from '../dist/base/quote-shell.js';
import { localMachine } from '../dist/machine/local/local-machine.js';
import { shellMachine } from '../dist/machine/shell/shell-machine.js';
import { describeHolders } from '../dist/server/describe-holders.js';
import { awaitMemory } from '../dist/server/gpu-memory.js';
import { killHolder } from '../dist/server/kill-holder.js';
import { stopLaunch } from '../dist/server/stop-launch.js';
import { localWire } from '../test/support/local-wire.mjs';

const GIB = 10;
const HOLDER = fileURLToPath(new URL('./hold-gpu-memory.py', import.meta.url));
const clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)), // nobody aborts here
};
/** `--in-sh`: every question as a script of sh, as a machine behind ssh is asked. */
const isInSh = process.argv.includes('--in-sh');
const machine = isInSh
  ? shellMachine(localWire({ shell: ['sh'] }), { name: 'this machine', clock })
  : localMachine({ clock, env: process.env, pid: process.pid, random: Math.random });
const folder = mkdtempSync(join(tmpdir(), 'aerie-gpu-proof-'));
const facts = { gib: GIB, cases: [] };

/** A sentence instead of a stack: it is read by a person on a machine that is not theirs. */
function giveUp(sentence, exit) {
  process.stderr.write(`${sentence}\n`);
  rmSync(folder, { recursive: true, force: true });
  process.exit(exit);
}

async function findCards() {
  const look = await machine.gpus();
  if (look.kind === 'absent') giveUp('There is no GPU here: nvidia-smi is not installed. Run this on a machine with one.', 3);
  if (look.kind === 'failed') giveUp(`The GPUs here cannot be read: ${look.because}`, 3);
  const python = await machine.run({ file: 'python3', args: ['-c', 'import ctypes'], timeoutMs: 60_000 });
  if (python.kind !== 'ended' || python.code !== 0) giveUp('There is no python3 here to take memory with.', 3);
  return look.gpus;
}

async function untilHeld(readSaid) {
  for (let look = 0; look < 600; look++) {
    const said = readSaid();
    if (said.text.includes('holding')) return;
    if (said.ended) throw new Error(`no memory could be taken: ${said.text.trim()}`);
    await clock.sleep(200);
  }
  throw new Error('no memory was taken in 120 s');
}

const memoryNow = (baseline, withinMs, ours) => awaitMemory({ machine, baseline, clock, withinMs, ours });
const usedNow = async () => {
  const look = await machine.gpus();
  return look.kind === 'read' ? look.gpus.map(({ usedMiB }) => usedMiB) : [];
};

async function record(name, pid, held, end) {
  const whileHeldMiB = await usedNow();
  const beganMs = clock.elapsed();
  const ended = await end();
  const shown = {
    ...{ name, pid, whileHeldMiB, sentences: held.kind === 'held' ? describeHolders(held) : [] },
    ...{ ...ended, freeAfterMs: Math.round(clock.elapsed() - beganMs), afterwardsMiB: await usedNow() },
  };
  const isNamed = held.kind === 'held' && held.holders.some((holder) => holder.pid === pid && holder.identity !== undefined);
  facts.cases.push({
    ...shown,
    isNamed,
    isFree: ended.memory.kind === 'free',
    holders: held.kind === 'held' ? held.holders : [],
  });
}

async function proveLaunch(baseline) {
  const paths = { workFolder: folder, logPath: join(folder, 'launch.log'), statusPath: join(folder, 'launch.status') };
  const command = ['python3', HOLDER, String(GIB)].map(quoteShell).join(' ');
  const launch = { setup: [], command, env: {}, ...paths, marker: `gpu-proof-${process.pid}` };
  const identity = await machine.start(launch);
  const end = () =>
    stopLaunch({ machine, launch: { ...launch, identity }, clock, termGraceMs: 3_000, killGraceMs: 30_000 }).then(
      async (report) => ({
        steps: report.steps,
        isStopped: report.isStopped,
        exitStatus: report.exitStatus,
        memory: await memoryNow(baseline, 60_000, launch.marker),
      }),
    );
  try {
    await untilHeld(() => ({ text: readFileSync(paths.logPath, 'utf8'), ended: !isThere(identity.pid) }));
    await record('a launch of Aerie that ignores SIGTERM', identity.pid, await memoryNow(baseline, 0, launch.marker), end);
  } catch (thrown) {
    await end();
    throw thrown;
  }
}

async function proveStranger(baseline) {
  const child = spawn('python3', [HOLDER, String(GIB)], { stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (piece) => (text += piece));
  const exited = once(child, 'exit');
  try {
    await untilHeld(() => ({ text, ended: child.exitCode !== null }));
    const graces = { termGraceMs: 3_000, killGraceMs: 30_000, withinMs: 60_000 };
    await record(
      'a process that Aerie did not start, ended with --kill-holder',
      child.pid,
      await memoryNow(baseline, 0),
      async () => {
        const outcome = await killHolder({ machine, pid: child.pid, baseline, clock, ...graces });
        return { outcome: outcome.kind, by: outcome.by, memory: outcome.memory ?? (await memoryNow(baseline, 0)) };
      },
    );
  } finally {
    child.kill('SIGKILL');
    await exited;
  }
}

function isThere(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function renderReport() {
  const card = facts.baseline[0];
  const lines = [
    `# Memory of a GPU: who holds it, and that it comes back`,
    '',
    `${facts.baseline.length} × ${card.name}, ${card.totalMiB} MiB each. Baseline: ${facts.baseline.map(({ usedMiB }) => `${usedMiB} MiB`).join(', ')}.`,
  ];
  for (const {
    name,
    pid,
    whileHeldMiB,
    sentences,
    freeAfterMs,
    afterwardsMiB,
    isNamed,
    isFree,
    steps = [],
    by = '',
  } of facts.cases) {
    const signals = steps.filter(({ kind }) => kind === 'signalled').map(({ signal, result }) => `${signal} ${result}`);
    lines.push('', `## ${name}`, '', `Pid ${pid} took ${GIB} GiB: ${whileHeldMiB.join(', ')} MiB used. Aerie said:`, '');
    lines.push(...sentences.map((sentence) => `> ${sentence}\n>`), '');
    lines.push(`Named by pid: ${isNamed ? 'yes' : 'no'}. Ended by: ${by || signals.join(', then ')}.`);
    lines.push(
      `Back at the baseline: ${isFree ? 'yes' : 'no'}, ${freeAfterMs} ms after the first signal: ${afterwardsMiB.join(', ')} MiB.`,
    );
  }
  return `${lines.join('\n')}\n`;
}

facts.baseline = await findCards();
try {
  await proveLaunch(facts.baseline);
  await proveStranger(facts.baseline);
} catch (thrown) {
  giveUp(`Not proven: ${thrown instanceof Error ? thrown.message : String(thrown)}`, 1);
}
const out = process.argv.slice(2).find((word) => word !== '--in-sh') ?? process.env.OUT ?? '.';
writeFileSync(join(out, 'gpu-proof.json'), `${JSON.stringify(facts, undefined, 2)}\n`);
writeFileSync(join(out, 'gpu-proof.md'), renderReport());
process.stdout.write(renderReport());
rmSync(folder, { recursive: true, force: true });
process.exitCode = facts.cases.every(({ isFree, isNamed }) => isFree && isNamed) ? 0 : 1;
