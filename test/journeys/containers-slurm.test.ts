/** A server that is a job of Slurm: waited for in the queue, used where it came to, ended with its srun and without. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { isAlive, until } from '../support/child-processes.ts';
import { eventsOf, expectAnsweredOnce } from '../support/launch-history.ts';
import { openProxy } from '../support/proxy.ts';
import { runningJobs, SECRET, slurmProject } from '../support/slurm-project.ts';

describe.runIf(process.platform === 'linux')('a server under srun', () => {
  test('waits in the queue, is one task on one node with its environment, and is ended with its step', async () => {
    // Login nodes have a proxy for what is outside.
    const proxy = await openProxy({});
    const env = { http_proxy: `http://127.0.0.1:${proxy.port}`, no_proxy: '', NO_PROXY: '' };
    const { project, slurm } = await slurmProject({
      options: '--gpus=8 --export=NONE',
      secrets: { HF_TOKEN: SECRET, ...env },
    });
    slurm.setFull(true);
    slurm.setNode('0.0.0.0'); // a name that is not this machine's: it is asked there
    const run = project.start('run', 'run.yaml');
    await run.line(/queued in Slurm: job 100 of Slurm waits: PENDING, Resources/);
    slurm.setFull(false);
    const ended = await run.ended;
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stderr).toContain(`ready at http://0.0.0.0:${project.port}`);
    expectAnsweredOnce(project, { B1: 4 });
    const [job] = runningJobs(slurm);
    expect(job?.options).toMatchObject({ nodes: '1', ntasks: '1', export: 'AERIE_LAUNCH,HF_TOKEN', 'kill-on-bad-exit': true });
    expect(job?.options['job-name']).toMatch(/^s-1-[0-9a-f]{16}$/);
    const environment = readFileSync(`/proc/${job?.pid}/environ`, 'utf8').split('\0');
    expect(environment).toEqual(
      expect.arrayContaining([`HF_TOKEN=${SECRET}`, `AERIE_LAUNCH=${String(job?.options['job-name'])}`]),
    );
    expect(readFileSync(`/proc/${job?.pid}/cmdline`, 'utf8')).not.toContain(SECRET);
    for (const command of [['server', 'verify'], ['probe']]) {
      const asked = await project.aerie(...command, 'run.yaml');
      expect(asked.code, asked.stdout + asked.stderr).toBe(0);
    }
    const stopped = await project.aerie('server', 'stop', 'run.yaml');
    expect(stopped.code, stopped.stdout).toBe(0);
    expect([runningJobs(slurm), isAlive(job?.pid ?? 0)]).toEqual([[], false]);
    expect(proxy.asked).toEqual([]);
  });

  test('whose srun is killed goes on, is found again, and is ended by its name', async () => {
    const { project, slurm } = await slurmProject();
    const started = await project.aerie('server', 'start', 'run.yaml');
    expect(started.code, started.stderr).toBe(0);
    const srun = project.book().current?.identity?.pid ?? 0;
    process.kill(srun, 'SIGKILL');
    await until(() => !isAlive(srun));
    const [job] = runningJobs(slurm);
    const ran = await project.aerie('run', 'run.yaml');
    expect(ran.code, ran.stderr).toBe(0);
    expectAnsweredOnce(project, { B1: 4 });
    expect(eventsOf(project, 'launch.started').length).toBe(1);
    expect(runningJobs(slurm)).toEqual([job]);
    const stopped = await project.aerie('server', 'stop', 'run.yaml');
    expect(stopped.code, stopped.stdout).toBe(0);
    expect([runningJobs(slurm), isAlive(job?.pid ?? 0)]).toEqual([[], false]);
  });

  test('that came to another node and listens on its own loopback is ended, and it is said what to write', async () => {
    const { project, slurm } = await slurmProject({ host: '127.0.0.1' });
    slurm.setNode('gpu3');
    const ran = await project.aerie('run', 'run.yaml');
    expect(ran.code, ran.stderr).toBe(3);
    expect(ran.stderr).toContain('Slurm started the engine on node gpu3, where it listens on 127.0.0.1 alone');
    expect(ran.stderr).toContain('host: 0.0.0.0 under flags:');
    expect(runningJobs(slurm)).toEqual([]);
  });

  test('and one over several nodes is refused before anything starts, with the recipe', async () => {
    const { project, slurm } = await slurmProject({ options: '-N 2 -n 2' });
    const ran = await project.aerie('run', 'run.yaml');
    expect(ran.code, ran.stderr).toBe(2);
    expect(ran.stderr).toContain('has srun -N 2, which spreads the server over several nodes');
    expect(ran.stderr).toContain('attach: http://NODE0:30000');
    expect(slurm.jobs()).toEqual([]);
  });
});
