/** `aerie probe gpu-box`: over a real sshd on loopback, engines are found by their processes and their logs by /proc; a machine that is silent ends it in time. */
import { expect, test } from 'vitest';
import { makeProject } from '../support/cli.ts';
import { launchProject } from '../support/launch-project.ts';
import { startProbedServer } from '../support/probed-server.ts';
import { hasSshd, startSshd } from '../support/sshd.ts';

test.skipIf(!hasSshd)('finds what runs there, its port and its log, and looks at all of it over ssh', async () => {
  const project = makeProject();
  const [box, server] = await Promise.all([startSshd(), startProbedServer(project, { name: 'engine' })]);
  await server.until('fired up and ready');
  const result = await project.aerie(['probe', box.target, '--json'], { env: box.env });
  const { data } = result.json();
  expect(data.taken).toBe('gpu-box, a machine behind ssh (no file has that name)');
  const found = data.servers.find((one: { readonly process: { readonly pid: number } }) => one.process?.pid === server.pid);
  expect(found, result.stdout + result.stderr).toMatchObject({
    ...{ state: 'ready', cause: 'none', engine: 'sglang', machine: 'gpu-box', isReady: true },
    health: { kind: 'http', status: 200 },
    capacity: { poolTokens: 159_277, kvType: { type: 'bf16' } },
    log: { path: server.logPath },
  });
  // The same by address and log there, and by the log alone.
  for (const args of [
    ['--url', server.url, '--log', server.logPath],
    ['--log', server.logPath],
  ]) {
    const named = await project.aerie(['probe', ...args, '--ssh', box.target, '--json'], { env: box.env });
    expect(named.json().data, named.stdout + named.stderr).toMatchObject({
      state: 'ready',
      process: { pid: server.pid },
      health: { status: 200 },
    });
    expect(named.code).toBe(0);
  }
  // A port there that nobody listens on.
  await server.kill('SIGKILL');
  const gone = await project.aerie(['probe', '--url', server.url, '--log', server.logPath, '--ssh', box.target, '--json'], {
    env: box.env,
  });
  expect(gone.json().data).toMatchObject({ state: 'crashed', health: { kind: 'refused' } });
  expect(gone.code).toBe(1);
});

test.skipIf(!hasSshd)('a machine that lets nobody in is the answer, and not that nothing runs there', async () => {
  const project = makeProject();
  const shut = await startSshd({ sshConfig: ['PreferredAuthentications password'] });
  const refused = await project.aerie(['probe', shut.target], { env: shut.env });
  expect(refused.code).toBe(3);
  expect(refused.stderr).toMatch(/machine\.refused\n +gpu-box cannot be used: .*Permission denied[\s\S]*ssh gpu-box true/);
  expect(refused.stdout).toBe('');
});

test.skipIf(!hasSshd)(
  'a machine that is silent ends it in time, and a word that ssh could take for an option is refused',
  async () => {
    const project = makeProject();
    const box = await startSshd();
    box.cable.freeze();
    const away = await project.aerie(['probe', box.target, '--json'], { env: box.env });
    expect(away.json().error, away.stdout).toMatchObject({
      code: 'machine.unreachable',
      remedy: expect.stringContaining('ssh gpu-box true'),
    });
    expect(away.code).toBe(5);
    // One that answers at once that nothing listens: its words, and not that it was silent; and a line with all that was named.
    await box.cable.cut();
    const cut = await project.aerie(['probe', `ssh://someone@${box.target}`, '--json'], { env: box.env });
    expect(cut.json().error, cut.stdout).toMatchObject({
      message: expect.stringMatching(/^gpu-box cannot be reached: .*(reset|refused|closed)/i),
      remedy: expect.stringContaining('ssh ssh://someone@gpu-box true'),
    });
    const option = await project.aerie(['probe', '--json', '--', '-oProxyCommand=touch was-run']);
    expect(option.code).toBe(2);
    expect(option.json().error).toMatchObject({ code: 'usage.flag' });
  },
);

test.skipIf(!hasSshd)(
  'a launch on gpu-box by its run file: ready over ssh; with the cable pulled what is known here, in time',
  async () => {
    const project = await launchProject({ where: 'ssh' });
    expect((await project.aerie('server', 'start', 'run.yaml')).code).toBe(0);
    const seen = await project.aerie('probe', 'run.yaml', '--json');
    expect(seen.json().data, seen.stdout + seen.stderr).toMatchObject({
      ...{ state: 'ready', machine: 'gpu-box', isWell: true, capacity: { poolTokens: 159_277 } },
      process: { pid: project.book().current?.identity?.pid, presence: 'running' },
    });
    expect(seen.code).toBe(0);
    project.place.sshd?.cable.freeze();
    const away = await project.aerie('probe', 'run.yaml', '--json');
    expect(away.code, away.stdout).toBe(1);
    expect(away.json().data).toMatchObject({ name: 's', health: null, capacity: { poolTokens: 159_277 } });
    expect(away.json().data.tookMs).toBeLessThan(25_000);
    expect(away.json().data.unseen.join('\n')).toMatch(/gpu-box: it did not answer in \d+ s/);
  },
  240_000, // a launch and an outage of twenty seconds, over ssh
);
