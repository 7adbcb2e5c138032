/** `aerie run --detach` with real processes: what the worker outlives, how it is looked at and ended, and what it leaves when it fails. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { childrenOf, isAlive, until } from '../support/child-processes.ts';
import { MAIN } from '../support/cli.ts';
import { expectEachOnce, type LookalikeProject, lookalikeProject } from '../support/lookalike-project.ts';
import { promptStates } from '../support/run-folder.ts';
import { tinyProject } from '../support/tiny-project.ts';
import { onSmallDisk, whyNoSmallDisk } from '../support/tmpfs.ts';

const SLOW = { latency: { kind: 'fixed', ms: 300 } };
const hasScript = spawnSync('script', ['--version']).status === 0;

interface HolderName {
  readonly pid: number;
  readonly isDetached?: boolean;
  readonly isDraining?: boolean;
}

function holderOf(project: LookalikeProject): HolderName | undefined {
  const path = join(project.runFolder, 'lock.json');
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as HolderName) : undefined;
}

/** A worker that a test leaves is ended with it; by the name that it wrote, which is gone when it has ended in order. */
async function project(request: Parameters<typeof lookalikeProject>[0]): Promise<LookalikeProject> {
  const made = await lookalikeProject(request);
  onTestFinished(() => {
    const pid = holderOf(made)?.pid;
    if (pid !== undefined && isAlive(pid)) process.kill(pid, 'SIGKILL');
  });
  return made;
}

async function detach(made: LookalikeProject): Promise<number> {
  const result = await made.aerie(['run', '--detach', 'run.yaml', '--json']);
  expect(result.code, result.stdout).toBe(0);
  const { pid, folder, log } = result.json().data as { pid: number; folder: string; log: string };
  expect(folder).toBe(made.runFolder);
  expect(log).toBe(join(made.runFolder, 'logs', 'worker.log'));
  expect(isAlive(pid)).toBe(true);
  expect(holderOf(made)).toMatchObject({ pid, isDetached: true });
  return pid;
}

/** Fields of /proc/PID/stat behind the name: state, parent, process group, session. */
function sessionOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[3]);
}

const ended = (pid: number) => until(() => !isAlive(pid), 60_000);
const wordsOf = (made: LookalikeProject, name = 'worker.log') => readFileSync(join(made.runFolder, 'logs', name), 'utf8');

test('the command returns when the worker works, says how to look and to stop, and the worker finishes alone', async () => {
  const made = await project({ prompts: 12, scenario: SLOW });
  const started = await made.aerie(['run', '--detach', 'run.yaml']);
  expect(started.code, started.stderr).toBe(0);
  const pid = Number(/pid (\d+)/.exec(started.stdout)?.[1]);
  expect(sessionOf(pid)).toBe(pid);
  for (const words of ['aerie status run.yaml', 'aerie status run.yaml --follow', 'aerie stop run.yaml', 'logs/worker.log'])
    expect(started.stdout).toContain(words);
  expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(1, -1)).toEqual([MAIN, 'run', 'run.yaml']);

  const status = await made.aerie(['status', 'run.yaml']);
  expect(status.stdout).toMatch(new RegExp(`^worker +pid ${pid} since 20.* UTC, detached, its words in .*worker\\.log$`, 'm'));
  const followed = await made.aerie(['status', 'run.yaml', '--follow']);
  expect(followed.code, followed.stderr).toBe(0);
  await ended(pid);
  expectEachOnce(made, 12);
  for (const words of [/^run r in /, /^B1: 12 prompts$/m, /ready at/, /^made +12 records/m]) expect(wordsOf(made)).toMatch(words);
  expect(readdirSync(join(made.runFolder, 'logs')).toSorted()).toEqual(['aerie.log', 'worker.log']);
  expect((await made.aerie(['status', 'run.yaml', '--json'])).json().data.worker).toBeUndefined();
});

test.skipIf(!hasScript)('a terminal that closes behind a detached worker is nothing to it', async () => {
  const made = await project({ prompts: 12, scenario: SLOW });
  const line = `${process.execPath} ${MAIN} run --detach run.yaml; sleep 1000`;
  const terminal = spawn('script', ['-qec', line, '/dev/null'], { cwd: made.folder, stdio: ['pipe', 'pipe', 'ignore'] });
  onTestFinished(() => void terminal.kill('SIGKILL'));
  let shown = '';
  terminal.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
  await until(() => shown.includes('aerie stop'), 60_000);
  const pid = holderOf(made)?.pid ?? 0;
  terminal.kill('SIGKILL'); // the other end of the terminal is gone: everything in it is hung up
  await once(terminal, 'exit');
  await ended(pid);
  expectEachOnce(made, 12);
});

test.skipIf(!hasScript)(
  'a terminal that closes in front of a worker drains it: committed, ended, and resumed by the same command',
  async () => {
    const made = await project({ prompts: 12, scenario: SLOW });
    const terminal = spawn('script', ['-qec', `${process.execPath} ${MAIN} run run.yaml`, '/dev/null'], {
      cwd: made.folder,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    onTestFinished(() => void terminal.kill('SIGKILL'));
    await until(async () => (await made.inFlight()) === 4, 60_000);
    const pid = holderOf(made)?.pid ?? 0;
    terminal.kill('SIGKILL');
    await ended(pid);
    const { done = 0 } = promptStates(made.runFolder);
    expect(done).toBeGreaterThan(0);
    expect(done).toBeLessThan(12);
    // Nothing was given up: what the engine received is a record.
    expect(made.journal().filter(({ event }) => event === 'received').length).toBe(done);
    expect(readFileSync(join(made.runFolder, 'logs', 'aerie.log'), 'utf8')).toMatch(/"kind":"run\.stopped".*run\.interrupted/);
    expect((await made.aerie(['run', 'run.yaml'])).code).toBe(0);
    expectEachOnce(made, 12);
  },
);

test('a worker that fails early is shown as without --detach, with its exit code, and leaves nothing', async () => {
  const made = await tinyProject({
    servers: [{ engine: 'embedded', flags: { threads: 1, context: 1024, 'kv-type': 'q8_0' } }],
    policy: [{ forbid: { 'kv-cache': 'below-16-bit' }, because: 'no', by: 'owner' }],
  });
  made.write('wrong.yaml', 'run: [');
  for (const [file, code] of [
    ['run.yaml', 2],
    ['wrong.yaml', 2],
    ['none.yaml', 2],
  ] as const)
    for (const json of [[], ['--json']]) {
      const plain = await made.aerie(['run', file, ...json]);
      const detached = await made.aerie(['run', '--detach', file, ...json]);
      expect([detached.code, detached.stdout, detached.stderr]).toEqual([code, plain.stdout, plain.stderr]);
      expect(plain.code).toBe(code);
    }
  expect(existsSync(made.path('runs'))).toBe(false);
});

test('two at once: one works, the other one is refused with its name and touches nothing of it', async () => {
  const made = await project({ prompts: 12, scenario: { latency: { kind: 'fixed', ms: 4_000 } } });
  const both = await Promise.all([0, 1].map(() => made.aerie(['run', '--detach', 'run.yaml', '--json'])));
  expect(both.map(({ code }) => code).toSorted()).toEqual([0, 3]);
  const [worker, refused] = both.toSorted((a, b) => Number(a.code) - Number(b.code)).map((result) => result.json());
  const pid = Number(worker?.data.pid);
  // Who comes in the very moment in which the lock is taken may find it without its name.
  expect(refused?.error?.code).toBe('ledger.held-elsewhere');
  const third = await made.aerie(['run', 'run.yaml', '--detach']);
  expect(third.code).toBe(3);
  expect(third.stderr).toMatch(new RegExp(`worked on by pid ${pid} on `));
  await ended(pid);
  expect(readdirSync(join(made.runFolder, 'logs')).toSorted()).toEqual(['aerie.log', 'worker.log']);
  expect(wordsOf(made)).toMatch(/made +12 records/);
  expectEachOnce(made, 12);
});

test('stop drains it and waits; a second stop is no second Ctrl-C; the next worker has a log of its own', async () => {
  const made = await project({ prompts: 24, scenario: { latency: { kind: 'fixed', ms: 4_000 } } });
  const pid = await detach(made);
  await until(async () => (await made.inFlight()) === 4, 60_000);
  const following = made.start(['status', 'run.yaml', '--follow']);
  await following.line(/following pid/);
  const watching = made.start(['status', 'run.yaml', '--follow']);
  await watching.line(/following pid/);
  watching.kill('SIGINT');
  const watched = await watching.ended;
  expect(watched.stderr).toContain('Ctrl-C: the watching ends, the worker goes on.\n');
  expect(isAlive(pid)).toBe(true);
  const stopping = made.start(['stop', 'run.yaml', '--json']);
  await until(() => holderOf(made)?.isDraining === true, 60_000);
  const again = await made.aerie(['stop', 'run.yaml']);
  const stopped = await stopping.ended;

  expect([stopped.code, again.code]).toEqual([0, 0]);
  const done = promptStates(made.runFolder)['done'] ?? 0;
  expect(stopped.json().data).toEqual({ run: 'r', folder: made.runFolder, pid, done, enrolled: 24 });
  expect(made.journal().filter(({ event }) => event === 'received').length).toBe(done);
  await ended(pid);
  expect(await following.ended).toMatchObject({ code: 130, stderr: expect.stringMatching(/run\.interrupted/) });
  expect((await made.aerie(['stop', 'run.yaml'])).stdout).toMatch(/^no worker works on run r\n/);

  const next = await detach(made);
  expect(wordsOf(made, 'worker.log.1')).toMatch(/draining: 4 requests in flight/);
  const now = await made.aerie(['stop', 'run.yaml', '--now']);
  expect(now.code, now.stderr).toBe(0);
  await ended(next);
  expect(wordsOf(made)).toMatch(/run\.terminated/);
});

test('kill -9 of the worker: who follows is told, and the same command resumes', async () => {
  const made = await project({ prompts: 12, scenario: SLOW });
  const pid = await detach(made);
  await until(async () => (await made.inFlight()) === 4, 60_000);
  const following = made.start(['status', 'run.yaml', '--follow']);
  await following.line(/following pid/);
  process.kill(pid, 'SIGKILL');
  expect(await following.ended).toMatchObject({ code: 5, stderr: expect.stringMatching(/run\.cut-off/) });
  // Its name is still beside the lock, and nobody is taken for it.
  expect(holderOf(made)).toMatchObject({ pid });
  expect((await made.aerie(['status', 'run.yaml'])).stdout).not.toMatch(/^worker/m);
  expect((await made.aerie(['stop', 'run.yaml'])).stdout).toMatch(/^no worker works on run r\n/);
  const next = await detach(made);
  await ended(next);
  expectEachOnce(made, 12);
});

test('Ctrl-C while the worker has not begun ends it too, and nothing is left', async () => {
  const made = await project({ prompts: 3 });
  const command = made.start(['run', '--detach', 'run.yaml']);
  let worker = 0;
  await until(() => {
    [worker = 0] = childrenOf(command.pid);
    return worker !== 0;
  });
  process.kill(worker, 'SIGSTOP'); // so that it does not begin
  command.kill('SIGINT');
  await command.line(/Ctrl-C/);
  process.kill(worker, 'SIGCONT');
  const result = await command.ended;
  expect(result.code, result.stderr).toBe(130);
  expect(result.stderr).toMatch(/run\.interrupted/);
  expect(isAlive(worker)).toBe(false);
  expect(holderOf(made)).toBeUndefined();
});

const noDisk = whyNoSmallDisk();
test.skipIf(noDisk !== undefined)('a disk that is full for its words does not end the run', async () => {
  const made = await project({ prompts: 12, scenario: SLOW });
  const logs = join(made.runFolder, 'logs');
  mkdirSync(logs, { recursive: true });
  await onSmallDisk(logs, 4096, async () => {
    made.write('runs/r/logs/ballast', 'x'.repeat(4096));
    const pid = await detach(made);
    await ended(pid);
    expect(readFileSync(join(logs, 'worker.log'), 'utf8')).toBe('');
  });
  expectEachOnce(made, 12);
});
