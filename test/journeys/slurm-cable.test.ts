/**
 * A job of Slurm whose login node is behind ssh, and the network cable to that node: a real sshd behind a proxy that resets every
 * connection. One command all the way, one job, and what was asked is there once.
 */
import { chmodSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { quoteShell } from '../../src/base/quote-shell.ts';
import { proves } from '../proves.ts';
import type { Cable } from '../support/cable.ts';
import { isAlive, until } from '../support/child-processes.ts';
import { type StartedCli, startAerie } from '../support/cli.ts';
import type { FakeSlurm } from '../support/fake-slurm.ts';
import { eventsOf, expectAnsweredOnce } from '../support/launch-history.ts';
import { describeAt } from '../support/launch-place.ts';
import type { LaunchProject, LaunchRequest } from '../support/launch-project.ts';
import { runningJobs, slurmProject } from '../support/slurm-project.ts';

/** Another address than the login node's loopback: the way to the server leads on from there. */
const NODE = '127.0.0.2';
const QUEUED = /queued in Slurm: job 100 of Slurm waits: PENDING, Resources/;

interface Behind {
  readonly project: LaunchProject;
  readonly slurm: FakeSlurm;
  readonly cable: Cable;
}

/** No node is free. */
async function behindCable(request: LaunchRequest = {}): Promise<Behind> {
  const { project, slurm } = await slurmProject({ where: 'ssh', ...request });
  const { sshd } = project.place;
  if (sshd === undefined) throw new Error('no login node');
  slurm.setNode(NODE, true);
  slurm.setFull(true);
  return { project, slurm, cable: sshd.cable };
}

/** From the cut until the run has said so; `meanwhile` what goes on there. */
async function outage(cable: Cable, run: StartedCli, meanwhile = async (): Promise<void> => undefined): Promise<void> {
  const said = (words: string) => run.stderr().split(words).length - 1;
  const [away, back] = [said('gpu-box: out of reach'), said('gpu-box: back after')];
  await cable.cut();
  await until(() => said('gpu-box: out of reach') > away, 60_000);
  await meanwhile();
  await cable.mend();
  await until(() => said('gpu-box: back after') > back, 60_000);
}

/** One job and one launch for all of it, and nobody judged. */
function expectOneJob({ project, slurm }: Behind, prompts: number, away: number): void {
  expectAnsweredOnce(project, { B1: prompts });
  expect(slurm.jobs().map(({ id, isOver }) => ({ id, isOver }))).toEqual([{ id: 100, isOver: false }]);
  expect(eventsOf(project, 'launch.starting')).toHaveLength(1);
  for (const kind of ['verdict.given', 'launch.ended', 'launch.changed', 'prompt.set-aside'])
    expect(eventsOf(project, kind)).toEqual([]);
  expect(eventsOf(project, 'machine.away')).toHaveLength(away);
}

const clientOf = (project: LaunchProject): number => project.book().current?.identity?.pid ?? 0;
const answered = (project: LaunchProject) => project.journal().filter(({ event }) => event === 'answered').length;
/** Only of a launch: the preflight runs setup lines too. */
const GATE = 'test -z "$AERIE_LAUNCH" || { touch begun; while test ! -e go; do sleep 0.1; done; }';

describeAt('ssh', 'the cable to a login node of Slurm is pulled', () => {
  proves(
    'machine:away-is-not-dead',
    'while the job waits, as it comes to its node and while answers come: one command and one job',
    async () => {
      const prompts = 24;
      const slow = { faults: [{ when: { fromRequest: 1 }, do: 'slow', ms: 8_000 }] };
      const behind = await behindCable({ prompts, clockRate: 4, run: { 'in-flight': 4 }, scenario: slow });
      const { project, slurm, cable } = behind;
      const run = project.start('run', 'run.yaml');
      await run.line(QUEUED);
      await outage(cable, run);
      expect(runningJobs(slurm)).toEqual([]);
      await outage(cable, run, async () => {
        slurm.setFull(false);
        await until(() => runningJobs(slurm).length === 1);
      });
      const [job] = runningJobs(slurm);
      await run.line(/launch 1 verified/);
      await until(() => answered(project) > 0, 60_000);
      await outage(cable, run);
      const before = answered(project);
      await until(() => answered(project) > before, 60_000);
      // Slurm ends no job whose srun is killed.
      await outage(cable, run, async () => {
        process.kill(clientOf(project), 'SIGKILL');
        await until(() => !isAlive(clientOf(project)));
      });
      const { code, stderr } = await run.ended;
      expect(code, stderr).toBe(0);
      expectOneJob(behind, prompts, 4);
      expect(runningJobs(slurm)).toEqual([job]);
    },
  );

  proves(
    'launch:one-at-a-time',
    'when the answer to srun would come: the job is found, and none is submitted beside it',
    async () => {
      const behind = await behindCable({ server: { setup: [GATE] } });
      const { project, slurm, cable } = behind;
      const run = project.start('run', 'run.yaml');
      await until(() => existsSync(join(project.place.workFolder, 'begun')), 60_000);
      await outage(cable, run, async () => {
        writeFileSync(join(project.place.workFolder, 'go'), '');
        await until(() => slurm.jobs().length === 1);
        expect(clientOf(project)).toBe(0); // nobody has told
      });
      await run.line(QUEUED);
      slurm.setFull(false);
      const { code, stderr } = await run.ended;
      expect(code, stderr).toBe(0);
      expectOneJob(behind, 4, 1);
    },
  );

  proves(
    'launch:one-at-a-time',
    'in the queue until patience is over, and mended just then: the job keeps its place, and the same command waits on',
    async () => {
      const behind = await behindCable({ run: { patience: '1s' } });
      const { project, slurm } = behind;
      const [ssh, cut] = [writeRefusedTwice(behind), project.path('cut')];
      const env = { ...project.env, AERIE_SSH: ssh };
      const tired = startAerie(['run', 'run.yaml'], { cwd: project.folder, env });
      await tired.line(QUEUED);
      writeFileSync(cut, '');
      const gaveUp = await tired.ended;
      expect(gaveUp.code, gaveUp.stderr).toBe(5);
      expect(gaveUp.stderr).toContain('machine.unreachable');
      expect(slurm.jobs()).toMatchObject([{ id: 100, isOver: false }]);
      rmSync(cut, { force: true });
      const run = project.start('run', 'run.yaml');
      await run.line(QUEUED);
      slurm.setFull(false);
      const { code, stderr } = await run.ended;
      expect(code, stderr).toBe(0);
      expectOneJob(behind, 4, 1);
    },
  );
});

/** An ssh that fails twice while the file `cut` is there, the second time when a patience of a second is over; then the network is back. */
function writeRefusedTwice({ project }: Behind): string {
  const [path, cut] = [project.path('refused-ssh'), quoteShell(project.path('cut'))];
  const lines = [
    '#!/bin/sh',
    `test -e ${cut} || exec ${quoteShell(project.place.env['AERIE_SSH'] ?? '')} "$@"`,
    `sleep 0.2; test -e ${cut}.once && rm -f ${cut}; touch ${cut}.once`,
    `echo 'ssh: connect to host gpu-box: Connection refused' >&2; exit 255`,
  ];
  writeFileSync(path, `${lines.join('\n')}\n`);
  chmodSync(path, 0o755);
  return path;
}
