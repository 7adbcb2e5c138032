/** What a person sees of launches beside a run: their history in `status`, and a preview that never launches beside a worker. */
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { expect, test } from 'vitest';
import { holdRun } from '../../../src/ledger/sqlite/worker-lock.ts';
import { describeAt, type Where } from '../../support/launch-place.ts';
import { launchProject, QUICK_PHASES, STORY_MACHINE } from '../../support/launch-project.ts';

export function describeHistory(where: Where): void {
  describeAt(where, 'beside a run', () => {
    test('status tells every launch, verdict and change, and where the living one is; a preview beside a worker asks that one', async () => {
      const project = await launchProject({ where, prompts: 6 });
      const once = project.path('first-life');
      const faults = [{ when: { phase: 'cuda-graph-capture' }, do: 'oom', once }];
      project.change({ scenario: { machine: STORY_MACHINE, phases: QUICK_PHASES, faults } });
      const ran = await project.aerie('run', 'run.yaml');
      expect(ran.code, ran.stderr).toBe(0);
      expect(existsSync(once)).toBe(true);

      const { stdout } = await project.aerie('status', 'run.yaml');
      const pid = project.book().current?.identity?.pid;
      const history = stdout.split('\n').filter((line) => /^ {2}\d{4}-/.test(line));
      const kinds = history.map(
        (line) => /launch 1 {2}|launch 1 is crashed|launch 1 ended|launch 2 next|launch 2 {2}|launch 2 verified/.exec(line)?.[0],
      );
      expect(kinds.filter((kind) => kind !== undefined)).toEqual([
        ...['launch 1  ', 'launch 1 is crashed', 'launch 1 ended', 'launch 2 next', 'launch 2  ', 'launch 2 verified'],
      ]);
      expect(stdout).toContain(`lives      s: launch 2${project.place.on}, pid ${pid}, port ${project.port}, log `);
      const { data } = (await project.aerie('status', 'run.yaml', '--json')).json();
      expect(data.history.map(({ kind }: { kind: string }) => kind)).toContain('launch.changed');
      expect(data.living).toMatchObject([{ server: 's', launch: 2, pid, port: project.port }]);

      const held = holdRun(project.runFolder, { pid: process.pid, host: hostname(), startedAt: 0 });
      // Other flags: whoever had the run would launch anew, and a preview must not.
      project.change({ flags: { tp: 8, 'mem-fraction-static': 0.87, 'kv-cache-dtype': 'bf16' } });
      const beside = await project.aerie('preview', 'run.yaml', '--json');
      const told = await project.aerie('preview', 'run.yaml');
      held.release();
      expect(beside.code, beside.stderr).toBe(0);
      expect(beside.json().data.records).toHaveLength(6);
      expect(told.stderr).toContain('none is launched');
      expect(project.book().launches).toBe(2);

      await project.aerie('server', 'stop', 'run.yaml');
      const heldAgain = holdRun(project.runFolder, { pid: process.pid, host: hostname(), startedAt: 0 });
      const refused = await project.aerie('preview', 'run.yaml', '--json');
      heldAgain.release();
      expect(refused.json().error?.code).toBe('ledger.held-elsewhere');
      expect(project.book().launches).toBe(2);
    });

    if (where === 'ssh') return; // What follows is the ledger alone.

    test('what a preview launches is kept for the run, and no other Aerie works on the run meanwhile', async () => {
      const project = await launchProject({ where, prompts: 4 });
      const preview = project.start('preview', 'run.yaml');
      await preview.line(/launch 1 started/);
      const meanwhile = await project.aerie('run', 'run.yaml', '--json');
      expect(meanwhile.json().error?.code).toBe('ledger.held-elsewhere');
      expect((await preview.ended).code, preview.stderr()).toBe(0);
      const ran = await project.aerie('run', 'run.yaml');
      expect(ran.code, ran.stderr).toBe(0);
      expect(ran.stderr).toContain('launch 1 still runs');
      expect(project.book().launches).toBe(1);
    });
  });
}
