/**
 * Servers that stand still behind an open port, and servers that only look so. What decides is tokens while work waits, and in a start
 * the phase's own limit; never a health check, never a wait of a fixed length.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { describeAt, type Where } from '../../support/launch-place.ts';
import { type LaunchProject, launchProject, QUICK_PHASES, STORY_FLAGS, STORY_MACHINE } from '../../support/launch-project.ts';
import { eventsOf, isAlive, serverLog } from '../../support/launch-witness.ts';
import { expectEachOnce } from '../../support/lookalike-project.ts';

const CLOCK_RATE = 60;
/** SGLang's watchdog of 300 s fires until half as late again; then its stacks are waited for. */
const LIMIT_MS = 480_000;
/** Answers of half a minute by the engine's clock, so that a run is met in the middle. */
const LONG_ANSWERS = { answerTokens: { kind: 'fixed', tokens: 900 } };

/** What Aerie asks of a server beside work. */
const PROBES = /"GET \/(health|metrics|(get_)?server_info|(get_)?model_info|v1\/models) HTTP/;

async function breakEngine({ port }: LaunchProject, fault: object): Promise<void> {
  const reply = await fetch(`http://127.0.0.1:${port}/_lookalike/fault`, { method: 'POST', body: JSON.stringify(fault) });
  expect(reply.status).toBeLessThan(300);
}

const answered = (project: LaunchProject) => project.journal().filter(({ event }) => event === 'answered').length;
const hangs = (project: LaunchProject) => eventsOf(project, 'verdict.given').filter(({ state }) => state === 'hung');

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(50);
}

export function describeHangs(where: Where): void {
  describeAt(where, 'hangs', () => {
    test('a start that stands still is found by the limit of its phase, and minutes in one forward pass are no hang', async () => {
      const project = await launchProject({ where, prompts: 8, clockRate: CLOCK_RATE });
      const once = project.path('first-life');
      project.change({
        scenario: {
          ...{ machine: STORY_MACHINE, phases: QUICK_PHASES },
          faults: [
            { when: { phase: 'distributed-init' }, do: 'hang', once },
            { when: {}, do: 'slow', ms: 300_000 },
          ],
        },
      });
      const run = await project.aerie('run', 'run.yaml');
      expect(run.code).toBe(0);
      expectEachOnce(project, 8);
      const [hang, ...others] = hangs(project);
      expect(others).toEqual([]);
      expect(hang).toMatchObject({ launch: 1, phase: 'distributed-init' });
      expect(hang?.['stillForMs']).toBeGreaterThan(120_000);
      expect(hang?.['signs']).toMatch(/the log: .*resident memory: .*distributed-init may stand still for 2 min/);
      expect(project.book().launches).toBe(2);
    });

    if (where === 'ssh') return; // What follows is judged by tokens and by the log; `ssh-cable.test.ts` has the way between.

    test('an idle server that is dead is let alone; with work waiting it is hung, and the run goes on by itself, twice', async () => {
      const project = await launchProject({
        where,
        prompts: 40,
        clockRate: CLOCK_RATE,
        flags: { ...STORY_FLAGS, 'enable-metrics': true },
        scenario: LONG_ANSWERS,
        run: { 'in-flight': 4, sampling: { 'max-tokens': 1000, seed: 7 } },
      });
      expect((await project.aerie('server', 'start', 'run.yaml')).code).toBe(0);
      const first = project.book().current?.identity?.pid ?? 0;
      await breakEngine(project, { do: 'scheduler-hangs', health: 'lies', when: {} });
      const alive = serverLog(project).length;
      await sleep((1.2 * LIMIT_MS) / CLOCK_RATE);
      const idle = await project.aerie('server', 'verify', 'run.yaml', '--json');
      expect(idle.json().data.servers[0]).toMatchObject({ pid: first, verdict: { state: 'ready', cause: 'none' } });
      expect(idle.json().data.servers[0].unverified).toContain('/server_info');
      expect(idle.code).toBe(1);

      const run = project.start('run', 'run.yaml');
      await run.line(/launch 1 is hung/);
      // Nothing moved in its log but what the probes of Aerie caused themselves.
      const [after = ''] = serverLog(project, 1).slice(alive).split('"POST /abort_request');
      const lines = after.split('\n').slice(0, -1);
      expect(lines.length).toBeGreaterThan(10);
      expect(lines.filter((line) => !PROBES.test(line))).toEqual([]);
      await run.line(/launch 2 verified/);
      expect(isAlive(first)).toBe(false);

      const before = answered(project);
      await until(() => answered(project) >= before + 4);
      await breakEngine(project, { do: 'scheduler-hangs', when: {} });
      await run.line(/launch 2 is hung/);
      await run.line(/launch 3 verified/);
      expect((await run.ended).code).toBe(0);
      expectEachOnce(project, 40);
      expect(project.book().launches).toBe(3);
      const [idler, worker, ...others] = hangs(project);
      expect(others).toEqual([]);
      for (const hang of [idler, worker]) expect(hang?.['stillForMs']).toBeGreaterThan(LIMIT_MS);
      expect(idler?.['signs']).toMatch(/no token for .* while 1 request of Aerie waits; 8 min may pass.* health: 200/);
      expect(worker?.['signs']).toMatch(/no token for .* while 4 requests of Aerie wait; 8 min may pass.* health: 503/);
    });
  });
}
