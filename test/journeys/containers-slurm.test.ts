/** A server that is a job of Slurm: waited for in the queue, used where it came to, ended with its srun and without. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isAlive, until } from '../support/child-processes.ts';
import { type FakeSlurm, installFakeSlurm } from '../support/fake-slurm.ts';
import { endsWithTheTest, eventsOf, expectAnsweredOnce } from '../support/launch-history.ts';
import { type LaunchProject, type LaunchRequest, launchProject, STORY_FLAGS } from '../support/launch-project.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/programs/lookalike-engine.js', import.meta.url));
const SECRET = 'hf_0123456789abcdef';

/** `options`: of srun. The engine listens everywhere, as a server on another node must; its port is of the loopback alone where it is not. */
async function slurmProject(
  request: LaunchRequest & { readonly options?: string; readonly host?: string } = {},
): Promise<{ readonly project: LaunchProject; readonly slurm: FakeSlurm }> {
  const { options = '--gpus=8', host = '0.0.0.0', clockRate = 20 } = request;
  const flags = { ...STORY_FLAGS, host };
  const project = await launchProject({ prompts: 4, clockRate, secrets: { HF_TOKEN: SECRET }, ...request, flags });
  endsWithTheTest(project);
  const slurm = installFakeSlurm(project.folder, project.path('bin'));
  onTestFinished(() => slurm.endAll());
  const own = `--as sglang@0.5.8 --scenario ${project.path('scenario.json')} --clock-rate ${clockRate} --journal ${project.path('journal.jsonl')}`;
  const command = `srun ${options} ${process.execPath} ${PROGRAM} ${own} --`;
  project.change({ server: { command, env: { HF_TOKEN: '$HF_TOKEN' } } });
  return { project, slurm };
}

const runningOf = (slurm: FakeSlurm) => slurm.jobs().filter(({ pid, isOver }) => pid !== undefined && !isOver);

describe.runIf(process.platform === 'linux')('a server under srun', () => {
  test('waits in the queue, is one task on one node with its environment, and is ended with its step', async () => {
    const { project, slurm } = await slurmProject({ options: '--gpus=8 --export=NONE' });
    slurm.setFull(true);
    slurm.setNode('localhost'); // a name that is not this machine's: it is asked there
    const run = project.start('run', 'run.yaml');
    await run.line(/job 100 of Slurm waits: PENDING, Resources/);
    slurm.setFull(false);
    const ended = await run.ended;
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stderr).toContain(`ready at http://localhost:${project.port}`);
    expectAnsweredOnce(project, { B1: 4 });
    const [job] = runningOf(slurm);
    expect(job?.options).toMatchObject({ nodes: '1', ntasks: '1', export: 'AERIE_LAUNCH,HF_TOKEN', 'kill-on-bad-exit': true });
    expect(job?.options['job-name']).toMatch(/^s-1-[0-9a-f]{16}$/);
    const environment = readFileSync(`/proc/${job?.pid}/environ`, 'utf8').split('\0');
    expect(environment).toEqual(
      expect.arrayContaining([`HF_TOKEN=${SECRET}`, `AERIE_LAUNCH=${String(job?.options['job-name'])}`]),
    );
    expect(readFileSync(`/proc/${job?.pid}/cmdline`, 'utf8')).not.toContain(SECRET);
    const stopped = await project.aerie('server', 'stop', 'run.yaml');
    expect(stopped.code, stopped.stdout).toBe(0);
    expect([runningOf(slurm), isAlive(job?.pid ?? 0)]).toEqual([[], false]);
  });

  test('whose srun is killed goes on, is found again, and is ended by its name', async () => {
    const { project, slurm } = await slurmProject();
    const started = await project.aerie('server', 'start', 'run.yaml');
    expect(started.code, started.stderr).toBe(0);
    const srun = project.book().current?.identity?.pid ?? 0;
    process.kill(srun, 'SIGKILL');
    await until(() => !isAlive(srun));
    const [job] = runningOf(slurm);
    const ran = await project.aerie('run', 'run.yaml');
    expect(ran.code, ran.stderr).toBe(0);
    expectAnsweredOnce(project, { B1: 4 });
    expect(eventsOf(project, 'launch.started').length).toBe(1);
    expect(runningOf(slurm)).toEqual([job]);
    const stopped = await project.aerie('server', 'stop', 'run.yaml');
    expect(stopped.code, stopped.stdout).toBe(0);
    expect([runningOf(slurm), isAlive(job?.pid ?? 0)]).toEqual([[], false]);
  });

  test('that came to another node and listens on its own loopback is ended, and it is said what to write', async () => {
    const { project, slurm } = await slurmProject({ host: '127.0.0.1' });
    slurm.setNode('gpu3');
    const ran = await project.aerie('run', 'run.yaml');
    expect(ran.code, ran.stderr).toBe(3);
    expect(ran.stderr).toContain('Slurm started the engine on node gpu3, where it listens on 127.0.0.1 alone');
    expect(ran.stderr).toContain('host: 0.0.0.0 under flags:');
    expect(runningOf(slurm)).toEqual([]);
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
