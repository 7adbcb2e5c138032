/** docker or Slurm on a machine behind ssh say no: before the launch, instead of it, in the queue and in mid-run. What happened, and what to type. */
import { expect, test } from 'vitest';
import { type ContainerProject, containerProject } from '../support/container-project.ts';
import { eventsOf, expectAnsweredOnce } from '../support/launch-history.ts';
import { describeAt } from '../support/launch-place.ts';
import { runningJobs, slurmProject } from '../support/slurm-project.ts';

describeAt('ssh', 'docker says no', () => {
  test('a daemon that forbids it or is down, before anything is started', async () => {
    const { project, docker } = await containerProject({ where: 'ssh', prompts: 2 });
    docker.setDaemon('denied');
    const denied = await project.aerie('run', 'run.yaml');
    expect(denied.code, denied.stderr).toBe(3);
    expect(denied.stderr).toContain('s was not launched on gpu-box: docker does not answer: this user may not speak to docker');
    expect(denied.stderr).toContain('usermod -aG docker');
    docker.setDaemon('down');
    const down = await project.aerie('run', 'run.yaml');
    expect(down.code, down.stderr).toBe(3);
    expect(down.stderr).toContain('docker does not run on that machine');
    expect(down.stderr).toContain('sudo systemctl start docker');
    expect(eventsOf(project, 'launch.starting')).toEqual([]);
    expect(docker.calls().filter(([verb]) => verb === 'run')).toEqual([]);
    docker.setDaemon('up');
    const ran = await project.aerie('run', 'run.yaml');
    expect(ran.code, ran.stderr).toBe(0);
    expectAnsweredOnce(project, { B1: 2 });
  });

  test.each<[string, (box: ContainerProject) => void, RegExp, string]>([
    [
      'an image that is nowhere',
      ({ project }) => project.change({ server: { command: 'docker run no/such-image python3 -m sglang.launch_server' } }),
      /the image is not there, and could not be fetched by that name \(container-image-missing, high\)/,
      'docker pull IMAGE',
    ],
    [
      'a name that is taken',
      ({ project }) => project.change({ server: { command: 'docker run --name mine sglang python3' } }),
      /a container of that name is there already \(container-name-taken, high\)/,
      'docker rm NAME',
    ],
  ])('%s: once, with its words, and nothing is left of it', async (_, spoil, verdict, remedy) => {
    const box = await containerProject({ where: 'ssh', prompts: 2 });
    const { project, docker } = box;
    await docker.run('--detach', '--name', 'mine', 'sleeper');
    const [other] = docker.pids();
    spoil(box);
    const ran = await project.aerie('run', 'run.yaml');
    expect(ran.code, ran.stderr).toBe(5);
    expect(ran.stderr).toMatch(verdict);
    expect(ran.stderr).toContain(remedy);
    expect(eventsOf(project, 'launch.started').length).toBe(1);
    expect(docker.pids()).toEqual([other]);
  });
});

describeAt('ssh', 'Slurm says no', () => {
  test('a controller that is down, before; a time limit in mid-run is a new job, and every answer is there', async () => {
    const scenario = { faults: [{ when: { fromRequest: 1 }, do: 'slow', ms: 20_000 }] };
    const { project, slurm } = await slurmProject({ where: 'ssh', prompts: 16, host: '127.0.0.1', scenario });
    slurm.setController('down');
    const down = await project.aerie('run', 'run.yaml');
    expect(down.code, down.stderr).toBe(3);
    expect(down.stderr).toContain(
      's was not launched on gpu-box: Slurm does not answer: the controller of Slurm does not answer',
    );
    expect(down.stderr).toContain('scontrol ping');
    slurm.setController('up');
    const run = project.start('run', 'run.yaml');
    await run.line(/launch 1 verified/);
    slurm.cancelAll('TIME LIMIT');
    const { code, stderr } = await run.ended;
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/Slurm ended the job: its time was over \(slurm-time-limit, high\)/);
    expect(stderr).toContain('--time=D-HH:MM:SS');
    expectAnsweredOnce(project, { B1: 16 });
    expect(eventsOf(project, 'launch.started').length).toBe(2);
  });

  test('a job that somebody cancels, in the queue or at work, is not put there again against their will', async () => {
    const { project, slurm } = await slurmProject({ where: 'ssh', prompts: 2, host: '127.0.0.1' });
    slurm.setFull(true);
    const queued = project.start('run', 'run.yaml');
    await queued.line(/queued in Slurm/);
    slurm.cancelAll('');
    const revoked = await queued.ended;
    expect(revoked.code, revoked.stderr).toBe(5);
    expect(revoked.stderr).toMatch(/somebody cancelled the job \(slurm-cancelled/);
    expect(slurm.jobs().length).toBe(1);
    slurm.setFull(false);
    const started = await project.aerie('server', 'start', 'run.yaml');
    expect(started.code, started.stderr).toBe(0);
    slurm.cancelAll('');
    const again = await project.aerie('run', 'run.yaml');
    expect(again.stderr).toMatch(/somebody cancelled the job \(slurm-cancelled/);
    expect(again.stderr).toContain('sacct -j JOB');
    expect(runningJobs(slurm)).toEqual([]);
  });
});
