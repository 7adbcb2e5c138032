/** Aerie is killed at any moment of a server's life: the next command finds the server, or what was decided, and goes on; never two engines. */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { proves } from '../../proves.ts';
import { isAlive, until } from '../../support/child-processes.ts';
import type { StartedCli } from '../../support/cli.ts';
import {
  askLookalike,
  endsWithTheTest,
  enginesOf,
  eventsOf,
  expectAnsweredOnce,
  expectNothingLives,
  neverTwoEngines,
} from '../../support/launch-history.ts';
import { describeAt, type Where } from '../../support/launch-place.ts';
import { type LaunchProject, launchProject, QUICK_PHASES } from '../../support/launch-project.ts';

/** Answers of some seconds: a kill always finds some in flight. */
const SLOW = { answerTokens: { kind: 'fixed', tokens: 1500 } };
const SAMPLING = { 'max-tokens': 1600, seed: 7 };
/** Only of a launch: the preflight runs setup lines too, to ask the engine for its help. */
const GATE = 'test -z "$AERIE_LAUNCH" || { touch begun; while test ! -e go; do sleep 0.1; done; }';

async function kill(worker: StartedCli): Promise<void> {
  worker.kill('SIGKILL');
  expect((await worker.ended).signal).toBe('SIGKILL');
}

async function killAt(project: LaunchProject, line: RegExp): Promise<void> {
  const worker = project.start('run', 'run.yaml');
  await worker.line(line);
  await kill(worker);
}

const lives = (project: LaunchProject) => new Set(project.journal().map(({ life }) => life)).size;
const answered = (project: LaunchProject) => project.journal().filter(({ event }) => event === 'answered').length;

export function describeKills(where: Where): void {
  describeAt(where, 'Aerie is killed', () => {
    proves('record:exactly-once', 'while it launches, adopts and generates: one engine lives through all of it', async () => {
      // A look on a busy machine, or over ssh, takes a second: one of them must meet the load.
      const scenario = { ...SLOW, phases: { ...QUICK_PHASES, 'weight-loading': { seconds: 60 } } };
      const project = await launchProject({
        where,
        prompts: 24,
        scenario,
        server: { setup: [GATE] },
        run: { sampling: SAMPLING },
      });
      endsWithTheTest(project);
      await neverTwoEngines(project, liveThroughKills(project));
      expect(lives(project)).toBe(1);
      expectAnsweredOnce(project, { B1: 24 });
      // It outlived them all; stop ends it by what was recorded.
      const [pid = 0] = enginesOf(project);
      expect(project.book()).toMatchObject({ launches: 1, current: { identity: { pid } } });
      const stopped = await project.aerie('server', 'stop', 'run.yaml');
      expect(stopped.code, stopped.stdout).toBe(0);
      expect(isAlive(pid)).toBe(false);
      await expectNothingLives(project);
    });

    proves(
      'launch:one-at-a-time',
      'while it ends a hung server, which the next one ends first; and Ctrl-C in the pause before a relaunch starts nothing',
      async () => {
        const scenario = { ...SLOW, ignoresSigterm: true, hangsUnlessEnv: 'NCCL_P2P_DISABLE' };
        const project = await launchProject({ where, prompts: 12, scenario, run: { sampling: SAMPLING } });
        endsWithTheTest(project);
        const last = await neverTwoEngines(project, hangAndBeKilled(project));
        expect(last.code, last.stderr).toBe(0);
        expectAnsweredOnce(project, { B1: 12 });
        expect(eventsOf(project, 'launch.started').map(({ facts }) => facts['launch'])).toEqual([1, 2, 3]);
      },
    );

    proves(
      'launch:one-at-a-time',
      'in a setup line, and the launch is not wanted any more: stop ends it, and no engine comes of it',
      async () => {
        const project = await launchProject({ where, server: { setup: [GATE] } });
        endsWithTheTest(project);
        const worker = project.start('server', 'start', 'run.yaml');
        await until(() => existsSync(join(project.place.workFolder, 'begun')));
        await kill(worker);
        const stopped = await project.aerie('server', 'stop', 'run.yaml');
        expect(stopped.code, stopped.stdout).toBe(0);
        await expectNothingLives(project);
        writeFileSync(join(project.place.workFolder, 'go'), '');
        expect(project.book()).not.toHaveProperty('current');
      },
    );

    if (where === 'ssh') return; // What follows is the book alone, which is here wherever the server is.

    proves(
      'launch:one-at-a-time',
      'between its verdict and the relaunch, and before it: what was decided is done once',
      async () => {
        const project = await launchProject({ where, prompts: 24, scenario: SLOW, run: { sampling: SAMPLING } });
        endsWithTheTest(project);
        const last = await neverTwoEngines(project, dieAndBeKilled(project));
        expect(last.code, last.stderr).toBe(0);
        expectAnsweredOnce(project, { B1: 24 });
        expect(project.book()).toMatchObject({ launches: 2 });
        expect(eventsOf(project, 'launch.started').map(({ facts }) => facts['launch'])).toEqual([1, 2]);
        expect(lives(project)).toBe(2);
      },
    );
  });
}

async function liveThroughKills(project: LaunchProject): Promise<void> {
  const first = project.start('run', 'run.yaml');
  await until(() => existsSync(join(project.place.workFolder, 'begun')));
  expect(project.book().current?.identity).toBeUndefined(); // the intention alone
  await kill(first);
  const second = project.start('run', 'run.yaml');
  await second.line(/its setup lines still run/);
  writeFileSync(join(project.place.workFolder, 'go'), '');
  await second.line(/loading weights/);
  await kill(second);
  await killAt(project, /^s: launch 1 still runs/);
  const [pid] = enginesOf(project);
  const third = project.start('run', 'run.yaml');
  await until(() => answered(project) > 4, 100_000);
  await kill(third);
  const fourth = await project.aerie('run', 'run.yaml');
  expect(fourth.code, fourth.stderr).toBe(0);
  expect(fourth.stderr).toContain('s: launch 1 still runs');
  expect(enginesOf(project)).toEqual([pid]);
}

async function dieAndBeKilled(project: LaunchProject) {
  const first = project.start('run', 'run.yaml');
  await first.line(/^s: ready at/);
  await askLookalike(project, { when: { request: 12 }, do: 'die' });
  await first.line(/^s: launch 1 is crashed/);
  await kill(first);
  await killAt(project, /^s: launch 2 next/);
  return await project.aerie('run', 'run.yaml');
}

async function hangAndBeKilled(project: LaunchProject) {
  const first = project.start('run', 'run.yaml');
  await first.line(/^s: launch 1 is hung/);
  await until(() => project.book().current === undefined); // judged, and deaf to SIGTERM
  const [hung] = enginesOf(project);
  await kill(first);
  expect(enginesOf(project)).toEqual([hung]);
  const second = project.start('run', 'run.yaml');
  await second.line(/^s: ready at/);
  await askLookalike(project, { when: { request: 10 }, do: 'die' }); // eight are asked at once
  await second.line(/^s: launch 3 next, with the same flags/);
  second.kill('SIGINT');
  const { code, stderr } = await second.ended;
  expect(code, stderr).toBe(130);
  expect(enginesOf(project)).toEqual([]);
  return await project.aerie('run', 'run.yaml');
}
