/** The fake docker does what tests believe of it: life, signals, environment, logs and words of the real client. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isAlive, until } from '../support/child-processes.ts';
import { installFakeDocker } from '../support/fake-docker.ts';

const HEARS = 'trap "echo got it; exit 4" TERM; echo ready; while :; do sleep 0.05; done';

function bench() {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-docker-'));
  const fake = installFakeDocker(folder, { plain: {}, shell: { entrypoint: ['sh', '-c'], env: { OF_IMAGE: 'yes' } } });
  onTestFinished(() => {
    fake.endAll();
    rmSync(folder, { recursive: true, force: true });
  });
  const env = { ...process.env, ...fake.env, OF_CLIENT: 'client' };
  return {
    folder,
    fake,
    docker: (...args: string[]) => spawnSync('docker', args, { env, encoding: 'utf8' }),
    start: (...args: string[]) => spawn('docker', args, { env, stdio: ['ignore', 'pipe', 'inherit'] }),
  };
}

test('a container has its own environment and nothing of the client’s', () => {
  const { docker, folder } = bench();
  writeFileSync(join(folder, 'env'), '# a comment\nFROM_FILE=a b\n');
  const { stdout } = docker(
    ...['run', '--rm', '--env-file', join(folder, 'env'), '-e', 'OF_CLIENT', '-eX=1', 'shell', 'env', '--gpus', 'all'],
  );
  const lines = stdout.trim().split('\n');
  expect(lines).toEqual(expect.arrayContaining(['OF_IMAGE=yes', 'FROM_FILE=a b', 'OF_CLIENT=client', 'X=1']));
  expect(docker('run', '--rm', 'shell', 'env').stdout).not.toMatch(/OF_CLIENT|AERIE/);
  expect(docker('ps', '-aq').stdout).toBe('');
});

test('its exit status is the client’s, and a client that is asked to end passes it on', async () => {
  const { docker, start } = bench();
  expect(docker('run', '--rm', 'shell', 'exit 7').status).toBe(7);
  const client = start('run', '--name', 'a', 'shell', HEARS);
  await until(() => docker('logs', 'a').stdout.includes('ready'));
  client.kill('SIGTERM');
  const code = await new Promise((done) => client.once('exit', done));
  expect(code).toBe(4);
  expect(docker('logs', 'a').stdout).toBe('ready\ngot it\n');
  expect(docker('ps', '-a', '--format', '{{.Names}} {{.Status}}').stdout).toBe('a Exited (4)\n');
});

test('a client that is killed leaves the container, and what has no handler hears no SIGTERM', async () => {
  const { docker, start, fake } = bench();
  const client = start('run', '--name', 'a', '--label', 'aerie.launch=m', 'plain', 'sleep', '1000');
  await until(() => fake.pids().length === 1);
  client.kill('SIGKILL');
  const [pid = 0] = fake.pids();
  expect(docker('ps', '-q', '--no-trunc', '--filter', 'label=aerie.launch=m').stdout).toMatch(/^[0-9a-f]{64}\n$/);
  expect(docker('kill', '-s', 'TERM', 'a').status).toBe(0);
  expect(isAlive(pid)).toBe(true);
  expect(docker('stop', '-t', '0', 'a').stdout).toBe('a\n');
  await until(() => !isAlive(pid));
  expect(docker('inspect', '-f', '{{.State.Status}} {{.State.ExitCode}} {{.State.Pid}}', 'a').stdout).toBe('exited 137 0\n');
  expect(docker('rm', 'a').status).toBe(0);
});

test('logs are both streams with their times, from a moment on, and a long line is several entries', async () => {
  const { docker } = bench();
  const script = 'echo one; echo two >&2; printf "%20000s\\n" x; exec sleep 1000';
  docker('run', '-d', '--name', 'a', 'shell', script);
  await until(() => docker('logs', 'a').stdout.length > 20_000);
  const { stdout, stderr } = docker('logs', '--timestamps', 'a');
  expect(stderr).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z two\n$/);
  expect(stdout.match(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z /g)).toHaveLength(3);
  const moment = stderr.slice(0, 30);
  expect(docker('logs', '--since', moment, 'a').stderr).toBe('two\n');
  const seconds = `${Math.floor(Date.parse(moment) / 1000)}.${moment.slice(20, 29)}`;
  expect(docker('logs', '--since', seconds, 'a').stderr).toBe('two\n');
  const path = docker('inspect', '-f', '{{.LogPath}}', 'a').stdout.trim();
  expect(JSON.parse(readFileSync(path, 'utf8').split('\n')[0] ?? '')).toMatchObject({ log: 'one\n', stream: 'stdout' });
});

test('what the real client refuses is refused in its words', () => {
  const { docker, fake, folder } = bench();
  expect(docker('run', '--nonsense', 'plain')).toMatchObject({ status: 125, stderr: 'unknown flag: --nonsense\n' });
  expect(docker('run', 'plain', 'no-such-program')).toMatchObject({ status: 127 });
  expect(docker('run', 'no-such-image').status).toBe(125);
  const idFile = join(folder, 'id');
  docker('run', '-d', '--name', 'a', '--cidfile', idFile, 'plain', 'sleep', '1000');
  expect(readFileSync(idFile, 'utf8')).toMatch(/^[0-9a-f]{64}$/);
  expect(docker('run', '--name', 'a', 'plain', 'true')).toMatchObject({
    status: 125,
    stderr: expect.stringContaining('Conflict. The container name "/a" is already in use'),
  });
  expect(docker('run', '--cidfile', idFile, 'plain', 'true').status).toBe(125);
  expect(docker('logs', 'nobody')).toMatchObject({
    status: 1,
    stderr: 'Error response from daemon: No such container: nobody\n',
  });
  expect(docker('inspect', 'nobody')).toMatchObject({ status: 1, stdout: '[]\n' });
  fake.setDaemon('denied');
  expect(docker('ps')).toMatchObject({ status: 1, stderr: expect.stringContaining('permission denied') });
  expect(existsSync(idFile)).toBe(true);
});
