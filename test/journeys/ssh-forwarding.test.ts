/** A GPU box whose sshd runs every script and forwards no port: it is said before a load of minutes, with what to change. */
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { attachProject } from '../support/attach-project.ts';
import { enginesOf } from '../support/launch-history.ts';
import { describeAt } from '../support/launch-place.ts';
import { launchProject } from '../support/launch-project.ts';
import { startSshd } from '../support/sshd.ts';

const FORBIDS = { sshdConfig: ['AllowTcpForwarding no'] };

describeAt('ssh', 'a box that forwards no port', () => {
  test('a launch: nothing is started, exit 3; doctor says the same', async () => {
    const project = await launchProject({ where: 'ssh', box: FORBIDS, prompts: 2 });
    const ran = await project.aerie('run', 'run.yaml');
    expect(ran.code, ran.stderr).toBe(3);
    expect(ran.stderr).toContain('machine.refused');
    expect(ran.stderr).toContain(`gpu-box lets nobody through to its port ${project.port}: sshd there forbids it.`);
    expect(ran.stderr).toContain('channel 2: open failed: administratively prohibited');
    expect(ran.stderr).toContain('AllowTcpForwarding local');
    expect(ran.stderr).toContain(`attach: http://HOST:${project.port}`);
    expect(enginesOf(project)).toEqual([]);
    expect(existsSync(project.path('runs/r/servers/s.json'))).toBe(false);
    const doctor = await project.aerie('doctor', 'run.yaml', '--json');
    expect(doctor.code).toBe(1);
    const checks: readonly { readonly name: string }[] = doctor.json().data.checks;
    expect(checks.filter(({ name }) => /gpu-box|of s|to s/.test(name))).toMatchObject([
      { name: 'machine gpu-box', verdict: 'ok' },
      { name: 'GPUs of gpu-box', verdict: 'ok' },
      { name: 'command of s', verdict: 'ok' },
      { name: 'port of s', verdict: 'ok' },
      {
        name: 'way to s',
        verdict: 'fails',
        says: expect.stringMatching(/forbids it \(machine\.refused\): ssh was turned away 3 times of 3: channel 2: open failed/),
        next: expect.stringContaining('AllowTcpForwarding'),
      },
    ]);
  });

  test('a server that is there: probe and doctor say it and see all the rest', async () => {
    const sshd = await startSshd(FORBIDS);
    const project = attachProject(4);
    const foreign = await project.startForeign({});
    project.rewrite({ attach: `ssh://${sshd.target}:${foreign.port}` });
    const inBox = { env: sshd.env };
    const probed = await project.aerie(['probe', 'run.yaml', '--json'], inBox);
    expect(probed.code, probed.stderr).toBe(3);
    const { data } = probed.json();
    expect(data, probed.stdout).toMatchObject({ health: null, isWell: false, process: { pid: foreign.pid() } });
    expect(data.refused).toMatchObject({ code: 'machine.refused', remedy: expect.stringContaining('AllowTcpForwarding local') });
    expect(data.unseen.join('\n')).toContain('health (machine.refused): gpu-box lets nobody through to its port');
    const told = await project.aerie(['probe', 'run.yaml'], inBox);
    expect([told.code, told.stdout]).toEqual([3, expect.stringContaining(`pid ${foreign.pid()}`)]);
    expect(told.stderr).toContain('AllowTcpForwarding local');
    const doctor = await project.aerie(['doctor', 'run.yaml', '--json'], inBox);
    const checks: readonly { readonly name: string; readonly verdict: string }[] = doctor.json().data.checks;
    expect(checks.flatMap(({ name, verdict }) => (/gpu-box|way/.test(name) ? [`${name}: ${verdict}`] : []))).toEqual([
      'machine gpu-box: ok',
      'way to s: fails',
    ]);
  });

  test('where it forwards, doctor says that the port is reached', async () => {
    const project = await launchProject({ where: 'ssh', prompts: 2 });
    const doctor = await project.aerie('doctor', 'run.yaml', '--json');
    expect(doctor.json().data.checks, doctor.stdout).toContainEqual(
      expect.objectContaining({
        name: 'way to s',
        verdict: 'ok',
        says: `port ${project.port} of gpu-box is reached through ssh`,
      }),
    );
  });
});
