/** A launched server that dies, hangs or never starts: what Aerie does next by itself, over the command line, and when it stops trying. */
import { expect, test } from 'vitest';
import { proves } from '../../proves.ts';
import { until } from '../../support/child-processes.ts';
import { askLookalike, enginesOf, eventsOf, expectAnsweredOnce, neverTwoEngines } from '../../support/launch-history.ts';
import { describeAt, type Where } from '../../support/launch-place.ts';
import { type LaunchProject, launchProject, QUICK_PHASES, STORY_FLAGS, STORY_MACHINE } from '../../support/launch-project.ts';

/** Answers of some seconds, so that there is something in flight whenever it dies. */
const LONG_ANSWERS = { answerTokens: { kind: 'fixed', tokens: 1500 } };
const SAMPLING = { 'max-tokens': 1600, seed: 7 };

export function describeRecovery(where: Where): void {
  describeAt(where, 'recovery', () => {
    proves(
      'prompt:server-death-blames-nobody',
      'a sudden death: the same flags once more, then the end with every launch told; the same command tries again',
      async () => {
        const project = await launchProject({ where, prompts: 24, scenario: LONG_ANSWERS, run: { sampling: SAMPLING } });
        const run = project.start('run', 'run.yaml');
        const first = neverTwoEngines(project, run.ended);
        await run.line(/^s: ready at/);
        await askLookalike(project, { when: { request: 12 }, do: 'die' });
        await run.line(/^s: launch 2 next, with the same flags/);
        await run.line(/^s: launch 2 verified/);
        await until(() => new Set(project.journal().map(({ life }) => life)).size === 2); // it is at work, too
        for (const pid of enginesOf(project)) process.kill(pid, 'SIGKILL');
        const ended = await first;
        expect(ended.code).toBe(5);
        expect(ended.stderr).toContain('server.gave-up');
        expect(crashesOf(project)).toEqual([
          [1, 'died-without-a-word'],
          [2, 'died-without-a-word'],
        ]);
        expect(ended.stderr).toMatch(/launch 1 \(as given\): crashed, ready, \d+ answers/);
        expect(ended.stderr).toContain('launch 2 (the same flags): crashed');
        expect(enginesOf(project)).toEqual([]);

        const again = await neverTwoEngines(project, project.aerie('run', 'run.yaml'));
        expect(again.code, again.stderr).toBe(0);
        expect(again.stderr).toContain('s: launch 3 verified');
        expectAnsweredOnce(project, { B1: 24 });
      },
    );

    test('a start that hangs in NCCL is told by what moves, ended, and started with the variable that cures it', async () => {
      const project = await launchProject({ where, prompts: 4, clockRate: 60, scenario: { hangsUnlessEnv: 'NCCL_P2P_DISABLE' } });
      const ended = await neverTwoEngines(project, project.aerie('run', 'run.yaml'));
      expect(ended.code, ended.stderr).toBe(0);
      const [verdict] = eventsOf(project, 'verdict.given').map(({ facts }) => facts);
      expect(verdict).toMatchObject({ launch: 1, state: 'hung', phase: 'distributed-init', cause: 'nccl-init-hang' });
      expect(verdict?.['stillForMs']).toBeGreaterThan(120_000); // by its clock: the phase's own limit
      expect(eventsOf(project, 'launch.changed')[0]?.facts).toMatchObject({ launch: 2, changes: 'NCCL_P2P_DISABLE not set → 1' });
      expectAnsweredOnce(project, { B1: 4 });
    });

    if (where === 'ssh') return; // What follows decides from the log and by arithmetic, wherever the log comes from.

    test('too small a fraction at the start is raised, never lowered', async () => {
      const project = await launchProject({ where, prompts: 4, flags: { ...STORY_FLAGS, 'mem-fraction-static': 0.7 } });
      const ended = await neverTwoEngines(project, project.aerie('run', 'run.yaml'));
      expect(ended.code, ended.stderr).toBe(0);
      expect(ended.stderr).toContain('predicted: it will not start'); // a person may know better, so it is tried
      expect(crashesOf(project)).toEqual([[1, 'weights-exceed-static-fraction']]);
      const [change] = eventsOf(project, 'launch.changed').map(({ facts }) => facts);
      const [, to = '0'] = /^mem-fraction-static 0\.7 → (0\.\d+)$/.exec(String(change?.['changes'])) ?? [];
      expect(Number(to)).toBeGreaterThan(0.769); // the weights alone need so much
      expect(change?.['freeAfterGraphsGiB']).toBeGreaterThan(Number(change?.['prefillNeedGiB']));
      const [verified] = eventsOf(project, 'launch.verified').map(({ facts }) => facts);
      expect(Math.abs(Number(verified?.['poolTokens']) - Number(change?.['poolTokens']))).toBeLessThan(100);
      expectAnsweredOnce(project, { B1: 4 });
    });

    test('what no flag and no second try can cure is given up with its reason, and an edit is tried', async () => {
      const text = "ValueError: Model architectures ['KimiK25ForConditionalGeneration'] are not supported for now.";
      const faults = [{ when: { phase: 'weight-loading' }, do: 'fail', text }];
      const project = await launchProject({ where, prompts: 4, scenario: { faults } });
      const ended = await project.aerie('run', 'run.yaml', '--json');
      expect(ended.code).toBe(5);
      const { error } = ended.json();
      expect(error).toMatchObject({ code: 'server.gave-up', message: expect.stringContaining('given up after one launch') });
      expect(error?.evidence?.join('\n')).toContain('launch 1 (as given): crashed, never ready');
      expect(error?.evidence?.join('\n')).toContain(text);
      expect(enginesOf(project)).toEqual([]);
      project.change({
        scenario: { machine: STORY_MACHINE, phases: QUICK_PHASES },
        flags: { ...STORY_FLAGS, 'attention-backend': 'triton' },
      });
      const again = await project.aerie('run', 'run.yaml');
      expect(again.code, again.stderr).toBe(0);
      expectAnsweredOnce(project, { B1: 4 });
    });

    test('vLLM: a context that its cache does not hold, then a death with requests in flight', async () => {
      const flags = { 'tensor-parallel-size': 8, 'gpu-memory-utilization': 0.9 };
      const engine = { engine: 'vllm', version: '0.16.0', flags } as const;
      const project = await launchProject({ where, ...engine, prompts: 16, scenario: LONG_ANSWERS, run: { sampling: SAMPLING } });
      const run = project.start('run', 'run.yaml');
      const work = neverTwoEngines(project, run.ended);
      await run.line(/^s: ready at/);
      await askLookalike(project, { when: { request: 12 }, do: 'die' });
      const ended = await work;
      expect(ended.code, ended.stderr).toBe(0);
      expect(crashesOf(project)).toEqual([
        [1, 'max-model-len-exceeds-kv-capacity'],
        [2, 'died-without-a-word'],
      ]);
      const changes = eventsOf(project, 'launch.changed').map(({ facts }) => facts['changes']);
      expect(changes).toEqual([expect.stringMatching(/^max-model-len default → \d+$/), 'the same flags']);
      expectAnsweredOnce(project, { B1: 16 });
    });
  });
}

function crashesOf(project: LaunchProject): unknown[] {
  const crashes = eventsOf(project, 'verdict.given').filter(({ facts }) => facts['state'] === 'crashed');
  return crashes.map(({ facts }) => [facts['launch'], facts['cause']]);
}
