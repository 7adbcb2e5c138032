/**
 * A server whose KV cache is FP8 and that says so nowhere: no line of its log names a type, its own account says `auto`. Bytes per token
 * give it away, and the rule is asked each time a server comes up, comes back or is found.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { CliResult } from '../../support/cli.ts';
import { describeAt, type Where } from '../../support/launch-place.ts';
import { type LaunchProject, launchProject, QUICK_PHASES, STORY_MACHINE } from '../../support/launch-project.ts';
import { eventsOf, serverLog } from '../../support/launch-witness.ts';
import { expectEachOnce } from '../../support/lookalike-project.ts';
import { readShardLines } from '../../support/run-folder.ts';

const BECAUSE = 'FP8 KV on an INT4 MLA model degrades it noticeably';
const HONEST = { machine: STORY_MACHINE, phases: QUICK_PHASES, answerTokens: { kind: 'fixed', tokens: 600 } };
const HIDING = { ...HONEST, hidesKvType: true };

const received = (project: LaunchProject) => project.journal().filter(({ event }) => event === 'received').length;
const records = (project: LaunchProject) => readShardLines(project.runFolder, 'B1');

function expectBroken(run: CliResult): void {
  expect(run.code).toBe(5);
  expect(run.json().error).toMatchObject({
    code: 'policy.broken',
    message: expect.stringMatching(/KV cache.* 8 bits/),
    because: `${BECAUSE} (decided by model owner)`,
  });
}

export function describeHiddenKv(where: Where): void {
  describeAt(where, 'a KV type that nobody names', () => {
    test('FP8 that only arithmetic shows breaks the rule at the first launch, at a restart, and when it is found again', async () => {
      const project = await launchProject({
        where,
        prompts: 40,
        clockRate: 30,
        flags: { tp: 8, 'mem-fraction-static': 0.88 },
        scenario: HIDING,
        run: {
          'in-flight': 4,
          sampling: { 'max-tokens': 800, seed: 7 },
          policy: [{ forbid: { 'kv-cache': 'below-16-bit' }, because: BECAUSE, by: 'model owner' }],
        },
      });
      expectBroken(await project.aerie('run', 'run.yaml', '--json'));
      expect(received(project)).toBe(0);
      expect(records(project)).toEqual([]);
      expect(serverLog(project)).not.toMatch(/fp8|float8/i);
      const [verified] = eventsOf(project, 'launch.verified');
      expect(verified).toMatchObject({ kvCacheDtype: 'fp8', how: 'bytes-per-token' });
      const look = await project.aerie('server', 'verify', 'run.yaml');
      expect(look.code).toBe(1);
      expect(look.stdout).toContain(`NOT KEPT`);
      expect(look.stdout).toContain(`(${BECAUSE}; decided by model owner)`);
      expect((await project.aerie('server', 'stop', 'run.yaml')).code).toBe(0);
      if (where === 'ssh') return; // When a rule is asked again is decided here, wherever the server is.

      project.change({ scenario: HONEST });
      const run = project.start('run', 'run.yaml', '--json');
      while (received(project) < 6) await sleep(50);
      project.change({ scenario: HIDING });
      process.kill(project.book().current?.identity?.pid ?? 0, 'SIGKILL');
      expectBroken(await run.ended);
      const made = records(project);
      expect(made.length).toBeGreaterThan(0);
      expect(made.every(({ provenance }) => provenance.kvCacheDtype === 'bf16')).toBe(true);
      expect(project.book().launches).toBe(3);

      const asked = received(project);
      expectBroken(await project.aerie('run', 'run.yaml', '--json'));
      expect(project.book().launches).toBe(3);
      expect(received(project)).toBe(asked);
      expect(records(project)).toHaveLength(made.length);

      project.change({ scenario: HONEST });
      expect((await project.aerie('server', 'stop', 'run.yaml')).code).toBe(0);
      expect((await project.aerie('run', 'run.yaml')).code).toBe(0);
      expectEachOnce(project, 40);
    });
  });
}
