/** Servers that run on another machine, and in containers: a real sshd, and docker as a program of tests. */
import { spawnSync } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import { attachProject } from '../support/attach-project.ts';
import { isAlive, until } from '../support/child-processes.ts';
import { type FakeDocker, installFakeDocker } from '../support/fake-docker.ts';
import { freePort } from '../support/launch-bench.ts';
import { eventsOf } from '../support/launch-witness.ts';
import { expectEachOnce } from '../support/lookalike-project.ts';
import { hasSshd, startSshd } from '../support/sshd.ts';

const FLAGS = ['--tp', '8', '--mem-fraction-static', '0.88', '--kv-cache-dtype', 'bf16'];

function dockerIn(folder: string): FakeDocker {
  const fake = installFakeDocker(folder, { 'lmsysorg/sglang:v0.5.8': {} });
  onTestFinished(() => fake.endAll());
  return fake;
}

test.runIf(hasSshd)('ssh://BOX:PORT: its log is found there, and a cut cable costs nothing', async () => {
  const sshd = await startSshd();
  const project = attachProject(30);
  const foreign = await project.startForeign({ flags: FLAGS, scenario: { answerTokens: { kind: 'fixed', tokens: 60 } } });
  project.rewrite({ attach: `ssh://${sshd.target}:${foreign.port}` }, { 'in-flight': 2 });
  const run = project.start(['run', 'run.yaml'], { env: sshd.env });
  await until(() => project.journal().filter(({ event }) => event === 'answered').length > 2, 60_000);
  await sshd.cable.cut();
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  await sshd.cable.mend();
  const ended = await run.ended;
  expect(ended.code, ended.stderr).toBe(0);
  expectEachOnce(project, 30);
  expect(ended.stderr).toContain(`s: its log is ${project.path('log')} (`);
  expect(eventsOf(project, 'server.verified')[0]).toMatchObject({ kvCacheDtype: 'bf16', how: 'log-line' });
  expect(isAlive(foreign.pid())).toBe(true);
});

test.runIf(hasSshd)(
  'ssh://BOX:PORT that lets nobody in is said at once, by a run and by a probe, with what to type',
  async () => {
    const shut = await startSshd({ sshConfig: ['PreferredAuthentications password'] });
    const project = attachProject();
    project.rewrite({ attach: `ssh://${shut.target}:30000` });
    for (const command of ['run', 'probe']) {
      const told = await project.aerie([command, 'run.yaml'], { env: shut.env });
      expect(told.code, told.stderr).toBe(3);
      expect(told.stderr).toMatch(/machine\.refused\n +gpu-box cannot be used: .*Permission denied[\s\S]*ssh:\/\/gpu-box true/);
      expect(told.stderr).not.toContain('nothing listens there');
    }
  },
);

test('docker://NAME: the port that it publishes, its log, its flags; one that starts later is waited for; it lives on', async () => {
  const project = attachProject();
  const fake = dockerIn(project.folder);
  const env = { ...process.env, ...fake.env };
  const [inside, outside] = [await freePort(), await freePort()];
  project.rewrite({ attach: 'docker://sglang' });
  const run = project.start(['run', 'run.yaml'], { env: fake.env });
  await until(() => run.stderr().includes('not ready (container sglang'));
  const command = project.commandOf({ flags: FLAGS, port: inside });
  const started = spawnSync(
    'docker',
    [
      'run',
      '-d',
      '--name',
      'sglang',
      '--gpus',
      'all',
      '-p',
      `127.0.0.1:${outside}:${inside}`,
      'lmsysorg/sglang:v0.5.8',
      ...command,
    ],
    { env, encoding: 'utf8' },
  );
  expect(started.status, started.stderr).toBe(0);
  const ended = await run.ended;
  expect(ended.code, ended.stderr).toBe(0);
  expectEachOnce(project, 4);
  expect(ended.stderr).toContain('s: its log is docker logs sglang (');
  expect(ended.stderr).toContain(`ready at http://127.0.0.1:${outside}`);
  expect(eventsOf(project, 'server.verified')).toMatchObject([{ kvCacheDtype: 'bf16', how: 'log-line' }]);
  expect(fake.pids().every(isAlive)).toBe(true);
  expect(fake.pids()).toHaveLength(1);
  expect(fake.calls().filter(([verb]) => verb === 'kill' || verb === 'stop' || verb === 'rm')).toEqual([]);

  const flag = project.commandOf({ flags: ['--tp', '8'], port: inside });
  spawnSync('docker', ['rm', '-f', 'sglang'], { env });
  spawnSync(
    'docker',
    ['run', '-d', '--name', 'sglang', '--log-driver', 'none', '--network', 'host', 'lmsysorg/sglang:v0.5.8', ...flag],
    { env },
  );
  const again = await project.aerie(['preview', 'run.yaml'], { env: fake.env });
  expect(again.code, again.stderr).toBe(0);
  expect(again.stderr).toContain('container sglang keeps no log (log driver none)');
});

test.runIf(hasSshd)('docker://NAME on a machine behind ssh, whose user may ask docker alone', async () => {
  const project = attachProject();
  const fake = dockerIn(project.folder);
  const sshd = await startSshd({ env: { PATH: fake.env.PATH } });
  const port = await freePort();
  const command = project.commandOf({ flags: FLAGS, port });
  const env = { ...process.env, ...fake.env };
  spawnSync('docker', ['run', '-d', '--name', 'sglang', 'lmsysorg/sglang:v0.5.8', ...command], { env });
  project.rewrite({ machine: sshd.target, attach: 'docker://sglang' });
  const run = await project.aerie(['run', 'run.yaml'], { env: sshd.env });
  expect(run.code, run.stderr).toBe(0);
  expectEachOnce(project, 4);
  expect(run.stderr).toContain('s: its log is docker logs sglang (');
  expect(fake.pids().every(isAlive)).toBe(true);
});
