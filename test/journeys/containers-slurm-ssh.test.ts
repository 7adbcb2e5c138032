/**
 * A server that is a job of Slurm, started from a login node behind ssh. The compute node is another machine: an address that is not the
 * login node's loopback, where a stranger answers on the same port, and must never be asked.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { isAlive } from '../support/child-processes.ts';
import { eventsOf, expectAnsweredOnce } from '../support/launch-history.ts';
import { describeAt } from '../support/launch-place.ts';
import type { LaunchProject } from '../support/launch-project.ts';
import { runningJobs, slurmProject } from '../support/slurm-project.ts';

/** Loopback too, so that nothing leaves this machine, and another address than the one that a server is asked at as a rule. */
const NODE = '127.0.0.2';

/** On the login node, at the server's port: says 200 to everything, as a server that is well. */
async function startStranger({ port }: LaunchProject): Promise<string[]> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    response.end('{}');
  }).listen(port, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  onTestFinished(() => void server.closeAllConnections());
  onTestFinished(() => void server.close());
  return asked;
}

describeAt('ssh', 'a job of Slurm on another node than the login node', () => {
  test('is asked, verified, probed and told to drop its requests there, and nobody on the login node is', async () => {
    const { project, slurm } = await slurmProject({ where: 'ssh', clockRate: 2 }); // an abort is waited for 10 s of that clock, and needs a way of its own
    slurm.setNode(NODE, true);
    const asked = await startStranger(project);
    slurm.setFull(true);
    const started = project.start('server', 'start', 'run.yaml');
    await started.line(/queued in Slurm: job 100 of Slurm waits: PENDING, Resources/);
    const queued = await project.aerie('server', 'verify', 'run.yaml');
    expect(queued.code, queued.stdout).toBe(1);
    expect(queued.stdout).toContain('queued in Slurm: job 100 of Slurm waits: PENDING, Resources');
    slurm.setFull(false);
    const { code, stderr } = await started.ended;
    expect(code, stderr).toBe(0);

    const verified = await project.aerie('server', 'verify', 'run.yaml', '--json');
    expect(verified.code, verified.stdout).toBe(0);
    expect(verified.json().data.servers[0]).toMatchObject({ verdict: { state: 'ready' }, verified: { poolTokens: 159_277 } });
    const probed = await project.aerie('probe', 'run.yaml');
    expect(probed.code, probed.stdout).toBe(0);
    const ran = await project.aerie('run', 'run.yaml');
    expect(ran.code, ran.stderr).toBe(0);
    expectAnsweredOnce(project, { B1: 4 });
    expect(eventsOf(project, 'launch.started').length).toBe(1);

    const [job] = runningJobs(slurm);
    const stopped = await project.aerie('server', 'stop', 'run.yaml');
    expect(stopped.code, stopped.stdout).toBe(0);
    expect([runningJobs(slurm), isAlive(job?.pid ?? 0)]).toEqual([[], false]);
    expect(readFileSync(project.place.logPath(), 'utf8')).toContain('POST /abort_request HTTP/1.1" 200');
    expect(asked).toEqual([]);
  });
});
