/**
 * Another engine takes the port of a server that loads, and answers health and its account for it: it is told from the launch by who
 * listens, and no prompt is sent to it.
 */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { attachProject } from '../../support/attach-project.ts';
import { describeAt, type Where } from '../../support/launch-place.ts';
import { launchProject, QUICK_PHASES } from '../../support/launch-project.ts';
import { eventsOf, isAlive, serverLog } from '../../support/launch-witness.ts';
import { expectEachOnce } from '../../support/lookalike-project.ts';

export function describeStranger(where: Where): void {
  describeAt(where, 'a stranger on the port of a server that loads', () => {
    test('is named with its pid and what to type, gets no prompt, and once it is gone the launch is used', async () => {
      // Its HTTP server comes last: a load of 20 s, which leaves time for another to start.
      const phases = { ...QUICK_PHASES, 'weight-loading': { seconds: 600 } };
      const project = await launchProject({ where, prompts: 4, clockRate: 30, scenario: { phases } });
      const others = attachProject(1);
      const run = project.start('run', 'run.yaml');
      await run.line(/launch 1 .*pid \d+/);
      const stranger = await others.startForeign({ port: project.port, flags: ['--tp', '8'] });
      await run.line(
        new RegExp(`not ready \\(port ${project.port}.* is answered by pid ${stranger.pid()} \\(.*kill ${stranger.pid()}`),
      );
      expect(serverLog(project)).not.toContain('fired up');
      expect(eventsOf(project, 'server.ready')).toEqual([]);
      stranger.kill('SIGKILL');
      const ended = await run.ended;
      expect(ended.code, ended.stderr).toBe(0);
      expectEachOnce(project, 4);
      expect(others.journal().filter(({ event }) => event === 'answered')).toEqual([]);
      expect(project.book().launches).toBe(1);
      expect(isAlive(project.book().current?.identity?.pid ?? 0)).toBe(true);
      expect(eventsOf(project, 'server.ready')).toHaveLength(1);
      expect(readFileSync(project.path('runs/r/logs/aerie.log'), 'utf8')).toContain('which is not of this launch');
    });
  });
}
