/** A server in a container, over the command line: started, verified, used, ended; its client killed; nothing of it told to anybody. */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { isAlive, until } from '../support/child-processes.ts';
import { containerProject } from '../support/container-project.ts';
import { eventsOf, expectAnsweredOnce } from '../support/launch-history.ts';

const SECRET = 'hf_0123456789abcdef';

/** Command lines of everything that runs here now. */
function commandLines(): string {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return ''; // it has ended between two looks
      }
    })
    .join('\n');
}

describe.runIf(process.platform === 'linux')('a server in a container', () => {
  test('is started, verified, used and ended; no container is left, and no secret is told', async () => {
    const { project, docker } = await containerProject({
      ...{ prompts: 6, secrets: { HF_TOKEN: SECRET }, env: { HF_TOKEN: '$HF_TOKEN', NCCL_DEBUG: 'INFO' } },
      options: '--rm --gpus all',
    });
    const started = await project.aerie('server', 'start', 'run.yaml', '--json');
    expect(started.code, started.stderr).toBe(0);
    expect(docker.pids().length).toBe(1);
    const [pid = 0] = docker.pids();
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).toContain(`HF_TOKEN=${SECRET}\0`);
    expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')).toContain('0.0.0.0');
    expect(commandLines()).not.toContain(SECRET);
    const run = docker.calls().find(([verb]) => verb === 'run') ?? [];
    expect(run.join(' ')).toMatch(
      new RegExp(
        `^run --label aerie\\.launch=s-1-\\w+ --env AERIE_LAUNCH .*--env HF_TOKEN .*--publish 127.0.0.1:${project.port}:${project.port} `,
      ),
    );
    expect(run).not.toContain('--rm');
    expect(JSON.stringify(docker.calls())).not.toContain(SECRET);

    const verified = await project.aerie('server', 'verify', 'run.yaml');
    expect(verified.code, verified.stdout).toBe(0);
    const ran = await project.aerie('run', 'run.yaml');
    expect(ran.code, ran.stderr).toBe(0);
    expectAnsweredOnce(project, { B1: 6 });
    expect(eventsOf(project, 'launch.adopted').length).toBe(1);
    const stopped = await project.aerie('server', 'stop', 'run.yaml');
    expect(stopped.code, stopped.stdout).toBe(0);
    expect([docker.pids(), isAlive(pid)]).toEqual([[], false]);
    expect(readdirSync(`${docker.stateFolder}/containers`)).toEqual([]);
    expect(readFileSync(`${project.runFolder}/servers/s.json`, 'utf8')).not.toContain(SECRET);
  });

  test('whose image has to be fetched first is waited for, and it is said what for', async () => {
    const { project, docker, log } = await containerProject({ prompts: 2 });
    docker.fetchFirst('sglang', [4000, 4000]);
    const ran = await project.aerie('run', 'run.yaml');
    expect(ran.code, ran.stderr).toBe(0);
    expect(ran.stderr).toMatch(/the image sglang is not on .*, and is fetched first/);
    expect(ran.stderr).toContain('fetching the image of its container');
    expect(log()).toContain('Status: Downloaded newer image for sglang:latest');
    expect(eventsOf(project, 'launch.started').length).toBe(1);
    expectAnsweredOnce(project, { B1: 2 });
    expect((await project.aerie('server', 'stop', 'run.yaml')).code).toBe(0);
    expect(docker.pids()).toEqual([]);
  });

  test('that the kernel ends for lack of memory has that for its verdict, and the same command goes on', async () => {
    const { project, docker } = await containerProject({
      prompts: 24,
      isHidden: true,
      scenario: { faults: [{ when: { fromRequest: 1 }, do: 'slow', ms: 20_000 }] },
    });
    const run = project.start('run', 'run.yaml');
    await run.line(/launch 1 verified/);
    const [first] = docker.pids();
    docker.runOutOfMemory();
    const ended = await run.ended;
    // The same flags end in the same way: the limit of the container is a person's.
    expect(ended.code, ended.stderr).toBe(5);
    expect(ended.stderr).toMatch(/launch 1 is crashed .*the kernel killed the process .* \(host-ram-oom-kill, high\)/);
    expect(ended.stderr).toMatch(/container fake_\w+ ended with exit status 137 at .*, killed for lack of memory \(OOMKilled\)/);
    expect(ended.stderr).toContain('a higher limit of the container');
    // How it ended is written down, so it was taken away.
    expect(readdirSync(`${docker.stateFolder}/containers`)).toEqual([]);
    const again = await project.aerie('run', 'run.yaml');
    expect(again.code, again.stderr).toBe(0);
    expectAnsweredOnce(project, { B1: 24 });
    expect(docker.pids()).not.toContain(first);
    expect((await project.aerie('server', 'stop', 'run.yaml')).code).toBe(0);
    expect(readdirSync(`${docker.stateFolder}/containers`)).toEqual([]);
  });

  test('whose client is killed is no dead server: it is found, its log goes on, and it is ended as what it is', async () => {
    const { project, docker, log } = await containerProject({ prompts: 6, isHidden: true });
    const started = await project.aerie('server', 'start', 'run.yaml');
    expect(started.code, started.stderr).toBe(0);
    const [pid = 0] = docker.pids();
    expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toContain('AERIE_LAUNCH');
    const client = project.book().current?.identity?.pid ?? 0;
    expect(readFileSync(`/proc/${client}/cmdline`, 'utf8')).toContain('run');
    process.kill(client, 'SIGKILL');
    await until(() => !isAlive(client));
    const before = log();

    const ran = await project.aerie('run', 'run.yaml');
    expect(ran.code, ran.stderr).toBe(0);
    expectAnsweredOnce(project, { B1: 6 });
    expect(docker.pids()).toEqual([pid]);
    expect(eventsOf(project, 'launch.started').length).toBe(1);
    expect(log().startsWith(before)).toBe(true);
    expect(log().slice(before.length)).toContain('Decode batch');

    const stopped = await project.aerie('server', 'stop', 'run.yaml');
    expect(stopped.code, stopped.stdout).toBe(0);
    expect([docker.pids(), isAlive(pid)]).toEqual([[], false]);
    expect(readdirSync(`${docker.stateFolder}/containers`)).toEqual([]);
  });
});
