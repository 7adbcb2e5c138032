/** The machine is gone, and the log of its server is not: `server logs` and `diagnose` read what was kept of it. */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { isAlive, until } from '../support/child-processes.ts';
import { makeProject } from '../support/cli.ts';
import { describeAt } from '../support/launch-place.ts';
import { launchProject } from '../support/launch-project.ts';
import { promptStates } from '../support/run-folder.ts';
import { startSshd } from '../support/sshd.ts';

/** A real log that ends in an error. */
const LOG = fileURLToPath(new URL('../corpus/logs/003-sglang-watchdog-pyspy-missing.log', import.meta.url));

test('a machine out of reach: its log is read from here, and that is said; one that was never mirrored is not made up', async () => {
  const project = makeProject();
  project.writeRows('prompts.jsonl', [{ prompt: 'Hello.' }]);
  project.writeRun('run.yaml', {
    run: 'r',
    model: 'm',
    servers: [{ engine: 'sglang', name: 's', machine: 'ssh://nobody@127.0.0.1:1' }], // where nothing listens
    partitions: [{ name: 'B1', from: 'prompts.jsonl' }],
  });
  mkdirSync(project.path('runs/r/logs'), { recursive: true });
  copyFileSync(LOG, project.path('runs/r/logs/s.log'));
  project.write('runs/r/logs/s.mirror.json', '{"launch":2}\n');

  const read = await project.aerie(['server', 'logs', 'run.yaml', '--launch', '2']);
  const whole = readFileSync(LOG, 'utf8');
  expect(read.code, read.stderr).toBe(5); // a script that takes 0 for all of the log is not misled
  expect(read.stdout).toBe(whole);
  const [lines, bytes] = [whole.split('\n').length - 1, Buffer.byteLength(whole)].map((count) => count.toLocaleString('en-US'));
  expect(read.stderr).toContain(
    `not shown whole and fresh: ${lines} lines (${bytes} bytes) were, 0 of the bytes from 127.0.0.1 and ${bytes}`,
  );
  expect(read.stderr).toMatch(/what was kept of it here: .*runs\/r\/logs\/s\.log, \d+ bytes/);

  const tail = await project.aerie(['server', 'logs', 'run.yaml', '--launch', '2', '--lines', '3']);
  const last = readFileSync(LOG, 'utf8').replace(/\n$/, '').split('\n').slice(-3);
  expect(tail.stdout.replace(/\n$/, '')).toBe(last.join('\n'));
  expect([tail.code, tail.stderr]).toEqual([5, expect.stringContaining('whole and fresh: 3 lines')]);

  const diagnosed = await project.aerie(['diagnose', 'runs/r/logs/s.log', '--json']);
  expect(diagnosed.json().data).toMatchObject({ state: 'crashed', cause: 'scheduler-stuck-watchdog' });

  const none = await project.aerie(['server', 'logs', 'run.yaml', '--launch', '1']);
  expect(none.code, none.stderr).toBe(5);
  expect(none.stderr).toMatch(/machine\.unreachable/);
});

describeAt('ssh', 'a log on a box', () => {
  async function boxWithLog() {
    const project = makeProject();
    const box = await startSshd();
    project.writeRows('prompts.jsonl', [{ prompt: 'Hello.' }]);
    const log = project.path('there.log');
    project.writeRun('run.yaml', {
      run: 'r',
      model: 'm',
      servers: [{ engine: 'sglang', name: 's', machine: box.target, log }],
      partitions: [{ name: 'B1', from: 'prompts.jsonl' }],
    });
    mkdirSync(project.path('runs/r/logs'), { recursive: true });
    project.write('runs/r/logs/s.mirror.json', '{"launch":2}\n');
    const text = Array.from({ length: 600_000 }, (_, at) => `line ${at} ${'x'.repeat(90)}\n`).join('');
    const copy = text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1); // all but the last line
    project.write('runs/r/logs/s.log', copy);
    const logs = (...more: string[]) => project.start(['server', 'logs', 'run.yaml', '--launch', '2', ...more], { env: box.env });
    return { project, box, log: `${log}.2`, text, copy, logs };
  }

  test('that is cut off in mid-read ends in what was kept here, with the numbers of both and exit 5', async () => {
    const { box, log, text, copy, logs } = await boxWithLog();
    writeFileSync(log, text);
    const reading = logs('--follow');
    await until(() => box.cable.carried > 5_000_000); // of 58 million
    await box.cable.cut();
    const read = await reading.ended;
    expect(read.code, read.stderr).toBe(5);
    expect(read.stdout === copy).toBe(true);
    const [, there = '', here = ''] =
      /599,999 lines .* were, ([\d,]+) of the bytes from gpu-box and ([\d,]+) from what/.exec(read.stderr) ?? [];
    const [fromThere, fromHere] = [there, here].map((count) => Number(count.replaceAll(',', '')));
    expect(fromThere).toBeGreaterThan(0);
    expect((fromThere ?? 0) + (fromHere ?? 0)).toBe(copy.length);
    expect(read.stderr).toContain('machine.unreachable');
  }, 180_000); // patience of a quarter of a minute

  test('that the box has lost is shown from here with exit 2, and one that it has whole with exit 0', async () => {
    const { log, text, copy, logs } = await boxWithLog();
    const lost = await logs().ended;
    expect([lost.code, lost.stdout === copy]).toEqual([2, true]);
    expect(lost.stderr).toMatch(/log\.unreadable/);
    expect(lost.stderr).toContain('What was kept is all that is left of it');
    writeFileSync(log, text);
    const whole = await logs().ended;
    expect([whole.code, whole.stdout === text, whole.stderr.includes('kept')]).toEqual([0, true, false]);
  });
});

describeAt('ssh', 'a launch of a detached worker', () => {
  test('goes on without the terminal over ssh, its log is kept here, and read here when the box is gone', async () => {
    const project = await launchProject({ where: 'ssh', prompts: 12 });
    const started = await project.aerie('run', '--detach', 'run.yaml', '--json');
    expect(started.code, started.stdout).toBe(0);
    const { pid } = started.json().data as { pid: number };
    onTestFinished(() => void (isAlive(pid) && process.kill(pid, 'SIGKILL')));
    const followed = await project.aerie('status', 'run.yaml', '--follow');
    expect(followed.code, followed.stderr).toBe(0);
    await until(() => !isAlive(pid));
    expect(promptStates(project.runFolder)).toEqual({ done: 12 });

    const there = readFileSync(project.place.logPath());
    const here = readFileSync(project.path('runs/r/logs/s.log'));
    expect(here.length).toBeGreaterThan(1_000);
    expect(there.subarray(0, here.length).equals(here)).toBe(true);

    await project.place.sshd?.cable.cut();
    const kept = await project.aerie('server', 'logs', 'run.yaml');
    expect(kept.code, kept.stderr).toBe(5);
    expect(kept.stdout).toBe(here.toString('utf8'));
    expect(kept.stderr).toMatch(/what was kept of it here/);
  });
});
