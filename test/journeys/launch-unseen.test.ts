/** A launch whose processes cannot be seen: the real command line with a /proc that is empty, in a mount namespace of its own. */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { isAlive } from '../support/child-processes.ts';
import { MAIN } from '../support/cli.ts';
import { endsWithTheTest, expectAnsweredOnce } from '../support/launch-history.ts';
import { launchProject } from '../support/launch-project.ts';

const HIDDEN = ['--mount', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$@"', 'sh'];
const canHide = process.platform === 'linux' && spawnSync('unshare', [...HIDDEN, 'true']).status === 0;

test.runIf(canHide)('is neither judged nor forgotten, and goes on for whoever sees it', async () => {
  const project = await launchProject({ prompts: 2 });
  endsWithTheTest(project);
  const started = await project.aerie('server', 'start', 'run.yaml');
  expect(started.code, started.stderr).toBe(0);
  const book = project.book();
  const pid = book.current?.identity?.pid ?? 0;
  for (const command of [['run'], ['server', 'stop']]) {
    const words = [process.execPath, MAIN, ...command, 'run.yaml'];
    const options = { cwd: project.folder, env: { ...process.env, ...project.env }, encoding: 'utf8', timeout: 60_000 } as const;
    const refused = spawnSync('unshare', [...HIDDEN, ...words], options);
    expect(refused.status, refused.stdout + refused.stderr).toBe(3);
    expect(refused.stderr).toContain('Whether the last launch of s still runs cannot be seen on this machine.');
    expect(refused.stderr).toContain(`ps -p ${pid}`);
    expect([project.book(), isAlive(pid)]).toEqual([book, true]);
  }
  const run = await project.aerie('run', 'run.yaml');
  expect(run.code, run.stderr).toBe(0);
  expectAnsweredOnce(project, { B1: 2 });
  expect(project.book().launches).toBe(1);
});
