/**
 * `aerie probe` of containers: docker is a program of tests (`fake-docker.mjs`), its containers are real processes that run the lookalike.
 * Also a docker whose daemon hangs, played by a program that sleeps.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type AttachProject, attachProject } from '../support/attach-project.ts';
import { isAlive, until } from '../support/child-processes.ts';
import { type FakeDocker, installFakeDocker } from '../support/fake-docker.ts';
import { freePort } from '../support/launch-bench.ts';
import { hasSshd, startSshd } from '../support/sshd.ts';

const FLAGS = ['--tp', '8', '--mem-fraction-static', '0.88', '--kv-cache-dtype', 'bf16'];
const RULE = { forbid: { 'kv-cache': 'below-16-bit' }, because: 'FP8 KV degrades it', by: 'model owner' };

interface Docker {
  readonly fake: FakeDocker;
  readonly docker: (...words: string[]) => string;
  /** A container that lives a launch; published as another port than the one inside. */
  readonly runServer: (name: string, flags?: readonly string[]) => Promise<number>;
}

function dockerIn(project: AttachProject): Docker {
  const fake = installFakeDocker(project.folder, { 'lmsysorg/sglang:v0.5.8': {} });
  onTestFinished(() => fake.endAll());
  const docker = (...words: string[]) => {
    const result = spawnSync('docker', words, { env: { ...process.env, ...fake.env }, encoding: 'utf8' });
    expect(result.status, result.stderr).toBe(0);
    return `${result.stdout}${result.stderr}`;
  };
  return {
    fake,
    docker,
    async runServer(name, flags = FLAGS) {
      const [inside, outside] = [await freePort(), await freePort()];
      const command = project.commandOf({ flags, port: inside });
      docker('run', '-d', '--name', name, '-p', `127.0.0.1:${outside}:${inside}`, 'lmsysorg/sglang:v0.5.8', ...command);
      await until(() => docker('logs', name).includes('fired up and ready'), 60_000);
      return outside;
    },
  };
}

test('docker://NAME that runs: its published port, its process, its log by docker, its rules; then killed for lack of memory', async () => {
  const project = attachProject();
  const { fake, docker, runServer } = dockerIn(project);
  const port = await runServer('sglang');
  project.rewrite({ attach: 'docker://sglang' }, { policy: [RULE] });
  const [byRun, byWord, byPort] = await Promise.all(
    [['run.yaml'], ['docker://sglang'], ['--url', `http://127.0.0.1:${port}`]].map((args) =>
      project.aerie(['probe', ...args, '--json'], { env: fake.env }),
    ),
  );
  const expected = {
    ...{ isReady: true, cause: 'none', engine: 'sglang', health: { kind: 'http', status: 200 } },
    address: `http://127.0.0.1:${port}`,
    capacity: { poolTokens: 159_277, kvType: { type: 'bf16' } },
    process: { pid: fake.pids()[0], presence: 'running', children: 8 },
    log: { path: 'docker logs sglang' },
  };
  for (const result of [byRun, byWord, byPort]) {
    expect(result?.json().data, `${result?.stdout}${result?.stderr}`).toMatchObject(expected);
    expect(result?.json().data.process.container).toMatch(/^docker-[0-9a-f]{12} \(sglang\)$/);
    expect(result?.code).toBe(0);
  }
  expect(byRun?.json().data.policy).toMatchObject([{ kept: true }]);
  expect(byWord?.json().data.taken).toBe('container docker://sglang on this machine');
  const calls = fake.calls().map(([verb]) => verb);
  expect(calls.filter((verb) => ['kill', 'stop', 'rm', 'exec'].includes(verb ?? ''))).toEqual([]);

  fake.runOutOfMemory();
  await until(() => docker('inspect', 'sglang').includes('"exited"'));
  const gone = await project.aerie(['probe', 'run.yaml', '--json'], { env: fake.env });
  expect(gone.code, gone.stdout + gone.stderr).toBe(1);
  expect(gone.json().data).toMatchObject({
    ...{ state: 'crashed', cause: 'host-ram-oom-kill', health: null },
    process: { presence: 'gone', exitStatus: 137 },
    capacity: { poolTokens: 159_277 },
  });
  expect(gone.json().data.process.end).toMatch(/^container sglang ended with exit status 137 at .*\(OOMKilled\)$/);
  const told = await project.aerie(['probe', 'docker://sglang'], { env: fake.env });
  expect(told.stdout).toMatch(/^process {4}container sglang ended with exit status 137/m);
  expect(told.stdout).toMatch(/\+ container sglang ended .*OOMKilled/);
});

test('a docker that hangs ends nothing in time but its own container; one that is not there is said', async () => {
  const project = attachProject();
  const { fake, runServer } = dockerIn(project);
  await runServer('sglang');
  mkdirSync(project.path('hangs'));
  writeFileSync(project.path('hangs/docker'), '#!/bin/sh\nexec sleep 600\n');
  chmodSync(project.path('hangs/docker'), 0o755);
  const slow = { PATH: `${project.path('hangs')}${delimiter}${fake.env.PATH}` };
  const [hangs, told, missing, denied] = await Promise.all([
    project.aerie(['probe', 'docker://sglang', '--json'], { env: slow }),
    project.aerie(['probe', 'docker://sglang'], { env: slow }),
    project.aerie(['probe', 'docker://no-such', '--json'], { env: fake.env }),
    project.aerie(['probe', '--url', 'docker://../x', '--json'], { env: fake.env }),
  ]);
  expect(hangs.code, hangs.stdout + hangs.stderr).toBe(1);
  expect(hangs.json().data.tookMs).toBeLessThan(25_000);
  expect(told.stdout).toContain('docker://sglang');
  expect(hangs.json().data.unseen.join('\n')).toMatch(
    /container sglang of this machine cannot be looked at: (docker does not|no) answer.*Try {2}docker ps/,
  );
  expect(missing.json().data, missing.stdout).toMatchObject({ state: 'absent' });
  expect(missing.json().data.log).toBeUndefined();
  expect(missing.json().data.unseen.join('\n')).toContain(
    'container no-such of this machine cannot be looked at: Error: No such object: no-such',
  );
  expect(denied.code).toBe(2);
  expect(fake.pids().every(isAlive)).toBe(true);
});

test.runIf(hasSshd)('over ssh: by its name there, and found by what runs there', async () => {
  const project = attachProject();
  const { fake, runServer } = dockerIn(project);
  await runServer('sglang');
  const sshd = await startSshd({ env: { PATH: fake.env.PATH } });
  const [pid] = fake.pids();
  const [named, found] = await Promise.all(
    [['--url', 'docker://sglang', '--ssh', sshd.target], [sshd.target]].map((args) =>
      project.aerie(['probe', ...args, '--json'], { env: sshd.env }),
    ),
  );
  const expected = {
    ...{ isReady: true, machine: sshd.target, health: { kind: 'http', status: 200 } },
    ...{ process: { pid, presence: 'running' }, log: { path: 'docker logs sglang' }, capacity: { poolTokens: 159_277 } },
  };
  expect(named?.json().data, `${named?.stdout}${named?.stderr}`).toMatchObject(expected);
  expect(named?.code).toBe(0);
  const one = found?.json().data.servers.find((server: { process?: { pid: number } }) => server.process?.pid === pid);
  expect(one, `${found?.stdout}${found?.stderr}`).toMatchObject(expected);
});
