/**
 * GPU memory held by another container of the host: Aerie works over ssh in one that sees the memory and nobody, and asks the host
 * where it is named. Both are real sshds; the box's nvidia-smi tells no pids, as in a container, the host's tells them all.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { quoteShell } from '../../src/base/quote-shell.ts';
import { isAlive } from '../support/child-processes.ts';
import { enginesOf, expectAnsweredOnce } from '../support/launch-history.ts';
import { type LaunchProject, launchProject } from '../support/launch-project.ts';
import { hasSshd, startSshd } from '../support/sshd.ts';

const HOLDER = fileURLToPath(new URL('../support/gpu-holder.mjs', import.meta.url));
const canRun = process.platform === 'linux' && (hasSshd || process.env['AERIE_REQUIRE_ALL'] === '1');

/** Of the config of ssh for the box: the other machine beside it, under a name of its own. */
function besides(folder: string, name: string): string[] {
  const text = readFileSync(join(folder, 'ssh_config'), 'utf8').trimEnd();
  return [...text.replace(/^Host .*$/m, `Host ${name}`).split('\n'), 'Host gpu-box'];
}

async function startStranger(project: LaunchProject, mib: readonly number[]): Promise<number> {
  const env = { ...process.env, ...project.place.cards };
  const child = spawn(process.execPath, [HOLDER, JSON.stringify({ mib })], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child.pid ?? 0;
}

describe.runIf(canRun)('memory of the GPUs that another container holds', () => {
  test('is named by the host where it is written, and the named process alone is ended there', async () => {
    const bin = mkdtempSync(join(tmpdir(), 'aerie-host-'));
    onTestFinished(() => rmSync(bin, { recursive: true, force: true }));
    const host = await startSshd({ env: { PATH: `${bin}:${process.env['PATH']}` } });
    const project = await launchProject({
      ...{ where: 'ssh', prompts: 4, clockRate: 40, run: { patience: '60s' } },
      box: { sshConfig: besides(host.folder, 'gpu-host') },
    });
    // What the host has on PATH: all of it. The box: memory, and no pid.
    const shim = project.path('bin/nvidia-smi');
    const told = readFileSync(shim, 'utf8');
    const cards = quoteShell(project.path('gpus'));
    writeFileSync(join(bin, 'nvidia-smi'), told.replace('exec ', `AERIE_LOOKALIKE_GPUS=${cards} exec `), { mode: 0o755 });
    writeFileSync(shim, told.replace('exec ', 'case $1 in --query-compute-apps*) exit 0 ;; esac\nexec '));
    const [pid, bystander] = [await startStranger(project, [30_000]), await startStranger(project, [])];

    const alone = await project.aerie('run', 'run.yaml');
    expect(alone.code, alone.stderr).toBe(3);
    expect(alone.stderr).toContain('nobody who can be seen from here');
    expect(alone.stderr).toContain('outer: ssh://root@HOST');

    project.change({ server: { machine: { ssh: 'gpu-box', outer: 'gpu-host' } } });
    const named = await project.aerie('run', 'run.yaml');
    expect(named.code, named.stderr).toBe(3);
    expect(named.stderr).toMatch(new RegExp(`GPU 0 has 30004 MiB in use, held by pid ${pid} on gpu-host \\(`));
    expect([isAlive(pid), isAlive(bystander)]).toEqual([true, true]);
    expect(enginesOf(project)).toEqual([]);

    const ended = await project.aerie('run', 'run.yaml', '--kill-holder', String(pid));
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stderr).toContain(`pid ${pid}, which was named, has ended`);
    expect([isAlive(pid), isAlive(bystander)]).toEqual([false, true]);
    expectAnsweredOnce(project, { B1: 4 });
  });
});
