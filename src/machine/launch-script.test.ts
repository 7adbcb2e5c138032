/** The launch script in a plain POSIX shell, and what it does for conda. (In bash: the contract of machines.) */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { until } from '../../test/support/child-processes.ts';
import { isLaunchShell, launchShellArgs, parseReport, renderLaunchScript, reportPathOf, saysStarted } from './launch-script.ts';
import type { DetachedStart } from './machine.ts';

function launchIn(shell: string, more: Partial<DetachedStart>, env: Record<string, string> = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-script-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [logPath, statusPath] = [join(folder, 'deep/log'), join(folder, 'status')];
  const request = { setup: [], command: 'true', env: {}, workFolder: folder, logPath, statusPath, marker: 'm', ...more };
  const input = renderLaunchScript(request);
  const result = spawnSync(shell, [...launchShellArgs('m')], {
    input,
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], ...env },
  });
  return { said: result.stdout, log: () => readFileSync(logPath, 'utf8'), request };
}

test.each(['sh', 'bash'])('%s: reports, runs, and writes the exit status', async (shell) => {
  const { said, log, request } = launchIn(shell, { setup: ['A=1; export A'], command: `sh -c 'echo "A=$A"; exit 6'` });
  expect(saysStarted(said)).toBe(true);
  expect(parseReport(said)).toMatchObject({ kind: 'started' });
  expect(readFileSync(reportPathOf(request.statusPath), 'utf8')).toBe(said);
  await until(() => readFileSync(request.statusPath, 'utf8') === '6\n');
  expect(log()).toBe('A=1\n');
});

test.each(['sh', 'bash'])('%s: an exit status that cannot be written leaves no word in the log of the program', (shell) => {
  const { log, request } = launchIn(shell, { command: `sh -c 'mkdir status.new; echo last'` });
  expect(readdirSync(request.workFolder)).toEqual(expect.arrayContaining(['status.new', 'status.start']));
  expect(readdirSync(request.workFolder)).not.toContain('status');
  expect(log()).toBe('last\n');
});

test.each(['sh', 'bash'])(
  '%s: one of two scripts of a launch runs; the other says so to who listens, and touches nothing',
  async (shell) => {
    const { said, request } = launchIn(shell, { command: `sh -c 'echo once'` });
    expect(saysStarted(said)).toBe(true);
    await until(() => readFileSync(request.statusPath, 'utf8') === '0\n');
    const files = () =>
      [request.logPath, request.statusPath, reportPathOf(request.statusPath)].map((path) => readFileSync(path, 'utf8'));
    const before = files();
    const late = spawnSync(shell, [...launchShellArgs('m')], { input: renderLaunchScript(request), encoding: 'utf8' });
    expect(parseReport(late.stdout)).toEqual({ kind: 'failed', step: 'claimed', setupLine: 0, exitStatus: 1 });
    expect(files()).toEqual(before);
  },
);

test.each(['sh', 'bash'])('%s: where no claim can be made, nothing is run and the report says why', (shell) => {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-script-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { said, request } = launchIn(shell, { command: 'touch never', marker: 'no/such/folder' });
  expect(parseReport(said)).toEqual({ kind: 'failed', step: 'claim', setupLine: 0, exitStatus: 1 });
  expect(readFileSync(reportPathOf(request.statusPath), 'utf8')).toBe(said);
  expect(readdirSync(request.workFolder)).not.toContain('never');
});

test.each(['sh', 'bash'])('%s: a setup line that fails is told by its number, also where it ends the shell', (shell) => {
  for (const [line, exitStatus] of [
    ['(exit 9)', 9],
    ['exit 8', 8],
  ] as const) {
    const { said, request } = launchIn(shell, { setup: ['true', line], command: 'touch never' });
    const heard = `${said}${readFileSync(reportPathOf(request.statusPath), 'utf8')}`;
    expect(parseReport(heard)).toEqual({ kind: 'failed', step: 'setup', setupLine: 1, exitStatus });
    expect(readdirSync(request.workFolder)).not.toContain('never');
  }
});

test('a script that was cut anywhere starts nothing', () => {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-cut-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const paths = { workFolder: folder, logPath: join(folder, 'log'), statusPath: join(folder, 'status') };
  const whole = renderLaunchScript({ setup: ['echo setup'], command: 'echo ran', env: {}, ...paths, marker: 'm' });
  const cuts = Array.from({ length: 25 }, (_, nth) => Math.floor(((whole.length - 2) * nth) / 25));
  for (const at of cuts) {
    const { stdout } = spawnSync('bash', [...launchShellArgs('m')], { input: whole.slice(0, at), encoding: 'utf8' });
    expect(stdout).toBe('');
  }
  expect(readdirSync(folder)).toEqual([]);
});

test('conda activate works in a shell that is not interactive', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-conda-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  // As conda's program does: `shell.posix hook` prints the function.
  writeFileSync(
    join(folder, 'conda'),
    `#!/bin/sh\ntest "$*" = "shell.posix hook" && echo 'conda() { CONDA_ENV=$2; export CONDA_ENV; }'\n`,
  );
  chmodSync(join(folder, 'conda'), 0o755);
  const PATH = `${folder}:${process.env['PATH'] ?? ''}`;
  const { log, request } = launchIn('bash', { setup: ['conda activate sglang'], command: `sh -c 'echo "$CONDA_ENV"'` }, { PATH });
  await until(() => readFileSync(request.statusPath, 'utf8') === '0\n');
  expect(log()).toBe('sglang\n');
});

test('what is heard is a report, or silence', () => {
  expect(parseReport('')).toEqual({ kind: 'silent' });
  expect(parseReport('aerie-launch started 42 boot')).toEqual({ kind: 'silent' }); // not whole
  expect(parseReport('noise\naerie-launch started 42  \n')).toEqual({ kind: 'started', pid: 42, bootId: '', startTicks: 0 });
  expect(parseReport('aerie-launch started x\n')).toEqual({ kind: 'silent' });
  expect(parseReport('aerie-launch failed folder 1\n')).toMatchObject({ kind: 'failed', step: 'folder', exitStatus: 1 });
  expect([isLaunchShell('bash -s -- aerie-launch m'), isLaunchShell('python3 -m aerie-launch')]).toEqual([true, false]);
});
