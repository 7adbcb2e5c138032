/** A GPU box whose sshd runs every script and forwards no port: it is said before a load of minutes, with what to change. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { attachProject } from '../support/attach-project.ts';
import { until } from '../support/child-processes.ts';
import type { CliResult } from '../support/cli.ts';
import { enginesOf } from '../support/launch-history.ts';
import { describeAt } from '../support/launch-place.ts';
import { launchProject } from '../support/launch-project.ts';
import { expectEachOnce } from '../support/lookalike-project.ts';
import { startSshd } from '../support/sshd.ts';

/** doctor waits 5 s for a machine and probe 8 s for a way, which a busy machine of tests overruns at times: then it is asked again. */
async function askUntil(word: string, ask: () => Promise<CliResult>): Promise<CliResult> {
  for (let tries = 1; ; tries++) {
    const result = await ask();
    if (result.stdout.includes(word) || tries === 4) return result;
  }
}

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
    const doctor = await askUntil('forbids it', () => project.aerie('doctor', 'run.yaml', '--json'));
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

  test('a server that is there: a run ends with exit 3 and asks nothing; probe and doctor say it and see all the rest', async () => {
    const sshd = await startSshd(FORBIDS);
    const project = attachProject(4);
    const foreign = await project.startForeign({});
    project.rewrite({ attach: `ssh://${sshd.target}:${foreign.port}` });
    const inBox = { env: sshd.env };
    const ran = await project.aerie(['run', 'run.yaml'], inBox);
    expect(ran.code, ran.stderr).toBe(3);
    expect(ran.stderr).toContain('machine.refused');
    expect(ran.stderr).toContain(`gpu-box lets nobody through to its port ${foreign.port}: sshd there forbids it.`);
    expect(project.journal().filter(({ event }) => event === 'answered')).toEqual([]);
    const probed = await askUntil('machine.refused', () => project.aerie(['probe', 'run.yaml', '--json'], inBox));
    expect(probed.code, probed.stderr).toBe(3);
    const { data } = probed.json();
    expect(data, probed.stdout).toMatchObject({ health: null, isWell: false, process: { pid: foreign.pid() } });
    expect(data.refused).toMatchObject({ code: 'machine.refused', remedy: expect.stringContaining('AllowTcpForwarding local') });
    expect(data.unseen.join('\n')).toContain('health (machine.refused): gpu-box lets nobody through to its port');
    const told = await askUntil('machine.refused', () => project.aerie(['probe', 'run.yaml'], inBox));
    expect([told.code, told.stdout]).toEqual([3, expect.stringContaining(`pid ${foreign.pid()}`)]);
    expect(told.stderr).toContain('AllowTcpForwarding local');
    const doctor = await askUntil('forbids it', () => project.aerie(['doctor', 'run.yaml', '--json'], inBox));
    const checks: readonly { readonly name: string; readonly verdict: string }[] = doctor.json().data.checks;
    expect(checks.flatMap(({ name, verdict }) => (/gpu-box|way/.test(name) ? [`${name}: ${verdict}`] : []))).toEqual([
      'machine gpu-box: ok',
      'way to s: fails',
    ]);
  });

  test('that forbids it in mid-run: the run stops with exit 3, and once it is allowed the same command goes on', async () => {
    const sshd = await startSshd();
    const keys = join(sshd.folder, 'authorized_keys');
    const allowing = readFileSync(keys, 'utf8');
    const project = attachProject(30);
    const foreign = await project.startForeign({ scenario: { answerTokens: { kind: 'fixed', tokens: 60 } } });
    project.rewrite({ attach: `ssh://${sshd.target}:${foreign.port}` }, { 'in-flight': 1 });
    const run = project.start(['run', 'run.yaml'], { env: sshd.env });
    await until(() => project.journal().some(({ event }) => event === 'answered'), 60_000);
    writeFileSync(keys, `no-port-forwarding ${allowing}`); // as it is read by the next connection
    await sshd.cable.cut();
    await sshd.cable.mend();
    const stopped = await run.ended;
    expect(stopped.code, stopped.stderr).toBe(3);
    expect(stopped.stderr).toContain('machine.refused');
    writeFileSync(keys, allowing);
    const again = await project.aerie(['run', 'run.yaml'], { env: sshd.env });
    expect(again.code, again.stderr).toBe(0);
    expectEachOnce(project, 30);
  });

  test('where it forwards, doctor says that the port is reached', async () => {
    const project = await launchProject({ where: 'ssh', prompts: 2 });
    const doctor = await askUntil('is reached through ssh', () => project.aerie('doctor', 'run.yaml', '--json'));
    expect(doctor.json().data.checks, doctor.stdout).toContainEqual(
      expect.objectContaining({
        name: 'way to s',
        verdict: 'ok',
        says: `port ${project.port} of gpu-box is reached through ssh`,
      }),
    );
  });
});
