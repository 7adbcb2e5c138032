/** The machine is gone, and the log of its server is not: `server logs` and `diagnose` read what was kept of it. */
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { isAlive, until } from '../support/child-processes.ts';
import { makeProject } from '../support/cli.ts';
import { describeAt } from '../support/launch-place.ts';
import { launchProject } from '../support/launch-project.ts';
import { promptStates } from '../support/run-folder.ts';

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
  expect(read.code, read.stderr).toBe(0);
  expect(read.stdout).toBe(readFileSync(LOG, 'utf8'));
  expect(read.stderr).toMatch(/what was kept of it here: .*runs\/r\/logs\/s\.log, \d+ bytes/);

  const tail = await project.aerie(['server', 'logs', 'run.yaml', '--launch', '2', '--lines', '3']);
  const lines = readFileSync(LOG, 'utf8').replace(/\n$/, '').split('\n').slice(-3);
  expect(tail.stdout.replace(/\n$/, '')).toBe(lines.join('\n'));

  const diagnosed = await project.aerie(['diagnose', 'runs/r/logs/s.log', '--json']);
  expect(diagnosed.json().data).toMatchObject({ state: 'crashed', cause: 'scheduler-stuck-watchdog' });

  const none = await project.aerie(['server', 'logs', 'run.yaml', '--launch', '1']);
  expect(none.code, none.stderr).toBe(5);
  expect(none.stderr).toMatch(/machine\.unreachable/);
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
    expect(kept.code, kept.stderr).toBe(0);
    expect(kept.stdout).toBe(here.toString('utf8'));
    expect(kept.stderr).toMatch(/what was kept of it here/);
  });
});
