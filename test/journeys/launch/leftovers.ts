/** What a dead server leaves behind, over the command line: ended where it is Aerie's, named where it is not, and nothing is started on top of it. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { proves } from '../../proves.ts';
import { childrenOf, isAlive } from '../../support/child-processes.ts';
import { MAIN } from '../../support/cli.ts';
import {
  endsWithTheTest,
  enginesOf,
  eventsOf,
  expectAnsweredOnce,
  expectNothingLives,
  livingOf,
  neverTwoEngines,
} from '../../support/launch-history.ts';
import { describeAt, type Where } from '../../support/launch-place.ts';
import { type LaunchProject, launchProject } from '../../support/launch-project.ts';

const HOLDER = fileURLToPath(new URL('../../support/gpu-holder.mjs', import.meta.url));

/** A process that Aerie did not start, with memory of the project's cards. */
async function startStranger(project: LaunchProject, holds: object): Promise<number> {
  const child = spawn(process.execPath, [HOLDER, JSON.stringify(holds)], {
    env: { ...process.env, ...project.place.cards },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child.pid ?? 0;
}

/** Of all cards, as the driver tells it. */
function usedMiB({ place }: LaunchProject): number {
  const asked = ['--query-gpu=memory.used', '--format=csv,noheader,nounits'];
  const { stdout } = spawnSync('nvidia-smi', asked, { env: { ...process.env, ...place.cards }, encoding: 'utf8' });
  const cards = stdout.trim().split('\n');
  return cards.reduce((sum, line) => sum + Number(line), 0);
}

const UNSHARE = ['-Urpf', '--mount-proc'];
const canUnshare = spawnSync('unshare', [...UNSHARE, 'true']).status === 0;

export function describeLeftovers(where: Where): void {
  describeAt(where, 'leftovers', () => {
    test('ranks deaf to SIGTERM that outlive their front end are ended by identity, and their memory is back before a relaunch', async () => {
      const scenario = { ignoresSigterm: true, leavesRanks: true, memoryStaysMs: 1500 };
      // A look over ssh takes longer, and a fast clock makes it no faster: what is killed has to be seen gone in time.
      const clockRate = where === 'ssh' ? 8 : 20;
      const project = await launchProject({ where, prompts: 8, clockRate, scenario });
      endsWithTheTest(project);
      const free = usedMiB(project);
      const started = await project.aerie('server', 'start', 'run.yaml', '--json');
      expect(started.code, started.stderr).toBe(0);
      const [front = 0] = enginesOf(project);
      const ranks = livingOf(project).filter((pid) => pid !== front);
      expect(ranks.length).toBeGreaterThanOrEqual(8);
      expect(usedMiB(project)).toBeGreaterThan(free + 8 * 80_000);
      process.kill(front, 'SIGKILL');

      const ended = await neverTwoEngines(project, project.aerie('run', 'run.yaml'));
      expect(ended.code, ended.stderr).toBe(0);
      expect(ranks.filter(isAlive)).toEqual([]);
      expectAnsweredOnce(project, { B1: 8 });
      // It found as much memory as the first: nothing of what was left was counted against it.
      const pools = eventsOf(project, 'launch.verified').map(({ facts }) => facts['poolTokens']);
      expect(pools).toEqual([159_277, 159_277]);
      const stopped = await project.aerie('server', 'stop', 'run.yaml');
      expect(stopped.code, stopped.stdout).toBe(0);
      await expectNothingLives(project);
      expect(usedMiB(project)).toBe(free);
    });

    proves(
      'launch:strangers-are-safe',
      'memory of others: it is named, nothing is started on it, and only the process that is named is ended',
      async () => {
        const project = await launchProject({ where, prompts: 4, clockRate: 40, run: { patience: '90s' } });
        endsWithTheTest(project);
        const stranger = await startStranger(project, { mib: [30_000] });
        const bystander = await startStranger(project, { mib: [] });
        const refused = await project.aerie('run', 'run.yaml');
        expect(refused.code, refused.stderr).toBe(3);
        expect(refused.stderr).toMatch(new RegExp(`GPU 0 has 30004 MiB in use, held by pid ${stranger} `));
        const wrong = await project.aerie('run', 'run.yaml', '--kill-holder', String(bystander));
        expect(wrong.code, wrong.stderr).toBe(3);
        expect(wrong.stderr).toContain(`pid ${bystander}, which was named, holds no memory of a GPU and was left alone`);
        expect([isAlive(stranger), isAlive(bystander)]).toEqual([true, true]);
        expect(eventsOf(project, 'launch.started')).toEqual([]);

        const ended = await neverTwoEngines(project, project.aerie('run', 'run.yaml', '--kill-holder', String(stranger)));
        expect(ended.code, ended.stderr).toBe(0);
        expect([isAlive(stranger), isAlive(bystander)]).toEqual([false, true]);
        expectAnsweredOnce(project, { B1: 4 });
        expect((await project.aerie('server', 'stop', 'run.yaml')).code).toBe(0);

        if (where === 'here' && canUnshare) await holdFromOutside(project);
        project.change({ run: {} }); // and all the patience that there usually is
        await holdAsZombie(project);
      },
    );
  });
}

/** Aerie and its server in a pid namespace, the holder outside (behind ssh it would be the sshd in there): nobody there can end it, so the operator is told whom to look for. */
async function holdFromOutside(project: LaunchProject): Promise<void> {
  // It is not seen to live from within, so its memory stays until the folder is emptied.
  const outside = await startStranger(project, { mib: [0, 20_000], keepsAfterDeath: true });
  const args = [...UNSHARE, process.execPath, MAIN, 'server', 'start', 'run.yaml', '--kill-holder', String(outside)];
  const env = { ...process.env, ...project.env, NO_COLOR: '1' };
  const refused = spawnSync('unshare', args, { cwd: project.folder, env, encoding: 'utf8' });
  expect(refused.status, refused.stderr).toBe(5);
  expect(refused.stderr).toContain('server.gave-up');
  expect(refused.stderr).toContain(`pid ${outside} on the host, holds 20,000 MiB of GPU 1`);
  expect(refused.stderr).toContain('ask the operator of the host');
  expect(isAlive(outside)).toBe(true);
  process.kill(outside, 'SIGKILL');
  rmSync(`${project.folder}/gpus/holds`, { recursive: true });
}

/** A zombie holds its memory until its parent reaps it: the parent is named, and the launch goes on when it has. */
async function holdAsZombie(project: LaunchProject): Promise<void> {
  const child = { mib: [0, 0, 40_000], keepsAfterDeath: 'until-reaped' };
  const parent = await startStranger(project, { child, reaps: false });
  const [zombie = 0] = childrenOf(parent);
  process.kill(zombie, 'SIGKILL');
  const start = project.start('server', 'start', 'run.yaml');
  await start.line(new RegExp(`\\(pid ${zombie}, .* has ended and holds 40,000 MiB of GPU 2 still\\. .*: pid ${parent}, `));
  expect(enginesOf(project)).toEqual([]);
  process.kill(parent, 'SIGKILL');
  const ended = await neverTwoEngines(project, start.ended);
  expect(ended.code, ended.stderr).toBe(0);
  expect(ended.stderr).toContain('GPU memory is back at its baseline');
}
