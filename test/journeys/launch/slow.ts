/**
 * A server that is slow and healthy: its start takes longer than any script waits, with minutes in which it says nothing. It is never
 * given up, whoever waits for it may leave, and what it is stands far from the end of its log.
 */
import { expect, test } from 'vitest';
import { describeAt, type Where } from '../../support/launch-place.ts';
import { launchProject } from '../../support/launch-project.ts';
import { eventsOf, isAlive, loggedSeconds, serverLog } from '../../support/launch-witness.ts';
import { expectEachOnce } from '../../support/lookalike-project.ts';

/** Three silences of four minutes while weights load, in a phase that may be silent for eight; 75 s of repacking come after the last shard. */
const SLOW_LOAD = [10_000, 290_000, 570_000].map((afterMs) => ({
  when: { phase: 'weight-loading', afterMs },
  do: 'slow',
  ms: 240_000,
}));

export function describeSlowStart(where: Where): void {
  describeAt(where, 'a slow start', () => {
    test('a start of eighteen minutes with long silences is followed to its end, left in mid-load and found again', async () => {
      const project = await launchProject({
        where,
        prompts: 6,
        clockRate: 60,
        scenario: { phases: { 'cuda-graph-capture': { seconds: 208 } }, faults: SLOW_LOAD },
      });
      const first = project.start('server', 'start', 'run.yaml');
      await first.line(/loading weights \d+ of 64 .* left/);
      first.kill('SIGINT');
      const left = await first.ended;
      expect(left.stderr).toContain('What was started goes on loading');
      expect(left.code).toBe(130);
      const pid = project.book().current?.identity?.pid ?? 0;
      expect(isAlive(pid)).toBe(true);

      const second = await project.aerie('server', 'start', 'run.yaml');
      expect(second.stderr).toMatch(new RegExp(`launch 1 still runs, pid ${pid}`));
      expect(second.stderr).toMatch(/loading weights [1-9]\d* of 64/);
      expect(second.stderr).toMatch(/repacking takes 70–80 s and prints nothing|weights are loaded/);
      expect(second.stderr).toMatch(/capturing CUDA graphs [1-9]\d* of \d+/);
      expect(second.stderr).toContain('verified: holds 159,277 tokens');
      expect(second.code).toBe(0);
      expect(second.stdout).toContain(`pid ${pid}`);
      expect(second.stdout).toContain('159,277 tokens of bf16');
      expect(loggedSeconds(serverLog(project))).toBeGreaterThan(1000);

      const run = await project.aerie('run', 'run.yaml');
      expect(run.code).toBe(0);
      expectEachOnce(project, 6);
      expect(project.book().launches).toBe(1);
      for (const kind of ['verdict.given', 'launch.ended', 'launch.given-up']) expect(eventsOf(project, kind)).toEqual([]);
    });
  });
}
