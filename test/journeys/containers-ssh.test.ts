/**
 * A server in a container on a machine behind ssh, where docker is on that machine's PATH alone: the life of it, its client killed, the
 * cable pulled, and a second person who takes it over.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isAlive, until } from '../support/child-processes.ts';
import { type ContainerProject, containerProject } from '../support/container-project.ts';
import { eventsOf, expectAnsweredOnce } from '../support/launch-history.ts';
import { describeAt } from '../support/launch-place.ts';

const SLOW = { faults: [{ when: { fromRequest: 1 }, do: 'slow', ms: 20_000 }] };

function expectNoneLeft({ docker }: ContainerProject): void {
  expect(docker.pids()).toEqual([]);
  expect(readdirSync(`${docker.stateFolder}/containers`)).toEqual([]);
}

/** One launch for all of it, and nobody judged. */
function expectOneLaunch({ project }: ContainerProject): void {
  expect(eventsOf(project, 'launch.started').length).toBe(1);
  for (const kind of ['verdict.given', 'launch.ended', 'prompt.set-aside']) expect(eventsOf(project, kind)).toEqual([]);
}

describeAt('ssh', 'a server in a container', () => {
  test('is started, verified, probed, used, adopted by a second run and ended with the process inside', async () => {
    const box = await containerProject({ where: 'ssh', prompts: 6 });
    const { project, docker } = box;
    const ran = await project.aerie('run', 'run.yaml');
    expect(ran.code, ran.stderr).toBe(0);
    const [pid = 0] = docker.pids();
    const verified = await project.aerie('server', 'verify', 'run.yaml');
    expect(verified.code, verified.stdout).toBe(0);
    const probed = await project.aerie('probe', 'run.yaml');
    expect(probed.code, probed.stdout).toBe(0);
    expect(probed.stdout).not.toContain('its port is held by');
    expect(probed.stdout).toMatch(new RegExp(`process {4}pid ${pid}, `));
    project.writeRows('more.jsonl', [{ prompt: 'One more question.' }]);
    project.change({
      run: {
        partitions: [
          { name: 'B1', from: 'prompts.jsonl' },
          { name: 'B2', from: 'more.jsonl' },
        ],
      },
    });
    const again = await project.aerie('run', 'run.yaml');
    expect(again.code, again.stderr).toBe(0);
    expect(again.stderr).toMatch(/launch 1 still runs/);
    expect(docker.pids()).toEqual([pid]);
    expectOneLaunch(box);
    const stopped = await project.aerie('server', 'stop', 'run.yaml');
    expect(stopped.code, stopped.stdout).toBe(0);
    expect(isAlive(pid)).toBe(false);
    expectNoneLeft(box);
  });

  test('whose client is killed in mid-run lives on: its answers come, its log goes on, and it is ended as what it is', async () => {
    const box = await containerProject({ where: 'ssh', prompts: 24, isHidden: true, scenario: SLOW });
    const { project, docker, log } = box;
    const run = project.start('run', 'run.yaml');
    await run.line(/launch 1 verified/);
    const [pid = 0] = docker.pids();
    const client = project.book().current?.identity?.pid ?? 0;
    process.kill(client, 'SIGKILL');
    await until(() => !isAlive(client));
    const before = log();
    const { code, stderr } = await run.ended;
    expect(code, stderr).toBe(0);
    expectAnsweredOnce(project, { B1: 24 });
    expect(docker.pids()).toEqual([pid]);
    expectOneLaunch(box);
    const probed = await project.aerie('probe', 'run.yaml');
    expect(probed.code, probed.stdout).toBe(0);
    expect(log().startsWith(before)).toBe(true);
    expect(log().slice(before.length)).toContain('Decode batch');
    const stopped = await project.aerie('server', 'stop', 'run.yaml');
    expect(stopped.code, stopped.stdout).toBe(0);
    expect(isAlive(pid)).toBe(false);
    expectNoneLeft(box);
  });

  test('goes on while the cable is out, in mid-load and in mid-run, also where its client is gone', async () => {
    const box = await containerProject({
      ...{ where: 'ssh', prompts: 24, clockRate: 4, run: { 'in-flight': 4 } },
      scenario: { faults: [{ when: { fromRequest: 1 }, do: 'slow', ms: 8_000 }] },
    });
    const { project, docker } = box;
    const cable = project.place.sshd?.cable;
    const run = project.start('run', 'run.yaml');
    await run.line(/loading weights/);
    await cable?.cut();
    await run.line(/^gpu-box: out of reach/);
    await cable?.mend();
    await run.line(/launch 1 verified/);
    const [pid = 0] = docker.pids();
    await until(() => project.journal().some(({ event }) => event === 'answered'), 60_000);
    await cable?.cut();
    process.kill(project.book().current?.identity?.pid ?? 0, 'SIGKILL');
    await until(() => run.stderr().split('gpu-box: out of reach').length > 2, 60_000);
    await cable?.mend();
    const { code, stderr } = await run.ended;
    expect(code, stderr).toBe(0);
    expectAnsweredOnce(project, { B1: 24 });
    expect(docker.pids()).toEqual([pid]);
    expectOneLaunch(box);
  });

  test('that the kernel ends for lack of memory has that for its verdict', async () => {
    const box = await containerProject({ where: 'ssh', prompts: 24, isHidden: true, scenario: SLOW });
    const { project, docker } = box;
    const run = project.start('run', 'run.yaml');
    await run.line(/launch 1 verified/);
    docker.runOutOfMemory();
    const ended = await run.ended;
    expect(ended.code, ended.stderr).toBe(5);
    expect(ended.stderr).toMatch(/container fake_\w+ ended with exit status 137 at .*, killed for lack of memory \(OOMKilled\)/);
    expect(ended.stderr).toMatch(/\(host-ram-oom-kill, high\)/);
    expectNoneLeft(box);
    expect(readFileSync(`${project.runFolder}/servers/s.json`, 'utf8')).not.toContain('"current"');
  });
});
