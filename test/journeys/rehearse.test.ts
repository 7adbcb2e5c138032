/**
 * A rehearsal of the story: 0.93 dies under load and is recovered, 0.88 goes through at the pool that was seen, and afterwards there is no run,
 * no process and no folder. The environment of every process of a rehearsal names its folder, so that one that is left is found by that.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { findKnownModel } from '../../src/capacity/known-models.ts';
import { aerie, makeProject, startAerie } from '../support/cli.ts';
import { QUICK_PHASES, STORY_MACHINE } from '../support/launch-project.ts';

/** 384 GB of host memory: no laptop has them, and a rehearsal does not ask. */
const STORY = {
  'enable-some-rare-thing': true,
  tp: 8,
  'kv-cache-dtype': 'bf16',
  'enable-hierarchical-cache': true,
  'hicache-size': 48,
} as const;

function storyProject(fraction: number, attached?: object) {
  const project = makeProject();
  // Long enough for a full prefill chunk: thousands of bytes, each of which is a token of the lookalike.
  const rows = Array.from({ length: 60 }, (_, at) => ({ prompt: `Question ${at}: ${'why is that so? '.repeat(120)}` }));
  project.writeRows('prompts.jsonl', rows);
  project.write('models/moonshotai/Kimi-K2.5/config.json', JSON.stringify(findKnownModel('moonshotai/Kimi-K2.5')?.config));
  project.write('story.json', JSON.stringify({ machine: STORY_MACHINE, phases: QUICK_PHASES }));
  project.write('quick.json', JSON.stringify({ phases: QUICK_PHASES }));
  project.writeRun('run.yaml', {
    run: 'r',
    model: project.path('models/moonshotai/Kimi-K2.5'),
    'price-per-hour': 14,
    servers: [
      attached ?? {
        ...{ engine: 'sglang', name: 's', port: 30_000, gpu: 'RTX PRO 6000', 'engine-version': '0.5.8' },
        // None of these is used: a rehearsal needs no secret and starts no engine.
        ...{ command: 'no-such-engine', setup: ['exit 3'], env: { KEY: '$NOT_SET' } },
        flags: { ...STORY, 'mem-fraction-static': fraction },
      },
    ],
    sampling: { 'max-tokens': 512, seed: 7 },
    'in-flight': 150,
    partitions: [
      { name: 'B1', from: 'prompts.jsonl' },
      { name: 'B2', from: 'prompts.jsonl', limit: 20 },
    ],
  });
  mkdirSync(project.path('tmp'));
  const options = { cwd: project.folder, env: { TMPDIR: project.path('tmp'), AERIE_CACHE: project.path('cache') } };
  return {
    ...project,
    rehearse: (...args: string[]) => aerie(['rehearse', 'run.yaml', '--rate', '30', ...args], options),
    begin: (...args: string[]) => startAerie(['rehearse', 'run.yaml', '--rate', '30', ...args], options),
    expectNothingLeft() {
      expect(existsSync(project.path('runs'))).toBe(false);
      expect(existsSync(project.path('cache/launches.jsonl'))).toBe(false);
      expect(readdirSync(project.path('tmp'))).toEqual([]);
      expect(processesOf(project.path('tmp/aerie-rehearse-'))).toEqual([]);
    },
  };
}

/** Pids whose environment names a folder that begins so. */
function processesOf(folder: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(folder);
    } catch {
      return false; // gone meanwhile, or somebody else's
    }
  });
}

describe('a rehearsal', () => {
  test('of 0.93 dies of memory under load, and what recovery does then goes through', async () => {
    const project = storyProject(0.93);
    const { code, stdout, stderr } = await project.rehearse('--scenario', 'story.json');
    expect(code, stderr).toBe(0);
    expect(stderr).toContain('runtime-oom');
    expect(stdout).toMatch(/^launch 1 .*--mem-fraction-static 0.93.*\n {9}crashed: /m);
    expect(stdout).toMatch(/^launch 2 .*\n {9}lives$/m);
    expect(stdout).toContain('it goes through: 80 prompts, 80 records');
    project.expectNothingLeft();
  });

  test('of 0.88 holds the tokens that were seen, and says hours and price of the whole run', async () => {
    const project = storyProject(0.88);
    const result = await project.rehearse('--scenario', 'story.json', '--prompts', '24', '--json');
    expect(result.code, result.stderr).toBe(0);
    const { servers, whole, ...report } = result.json().data;
    expect(servers[0].launches).toMatchObject([{ n: 1, ended: '', poolTokens: 159_277, kvCacheDtype: 'bf16' }]);
    expect(servers[0].launches[0].freeAfterGraphsGiB).toBeCloseTo(5.47, 2);
    expect(report).toMatchObject({ wentThrough: true, prompts: 24, records: 24, pricePerHour: 14 });
    expect(whole).toMatchObject({ prompts: 80, isAtLeast: false });
    expect(report.hours).toBeCloseTo(whole.tokens / report.tokensPerSecond / 3600, 6);
    project.expectNothingLeft();
  });

  test('without facts of a real launch has what the arithmetic has, and says so', async () => {
    const project = storyProject(0.88);
    const result = await project.rehearse('--scenario', 'quick.json', '--prompts', '4', '--json');
    expect(result.code, result.stderr).toBe(0);
    const { servers, assumed } = result.json().data;
    const [{ poolTokens, predictedTokens }] = servers[0].launches;
    expect(poolTokens).toBe(predictedTokens);
    // Some per cent of what was seen: the weights are counted, free memory is estimated.
    expect(Math.abs(poolTokens / 159_277 - 1)).toBeLessThan(0.05);
    expect(assumed.join('\n')).toContain('cannot surprise aerie plan');
    expect(assumed).toContain('s: without enable-some-rare-thing, which the lookalike does not know');
    project.expectNothingLeft();
  });

  test('with a fault that comes again and again does not go through: exit 1 with the report', async () => {
    const project = storyProject(0.88);
    const fault = { when: { phase: 'weight-loading' }, do: 'fail', text: 'OSError: [Errno 5] Input/output error' };
    project.write('fault.json', JSON.stringify({ machine: STORY_MACHINE, phases: QUICK_PHASES, faults: [fault] }));
    const { code, stdout } = await project.rehearse('--scenario', 'fault.json', '--prompts', '4');
    expect(stdout).toMatch(/^outcome {2}IT DOES NOT GO THROUGH: .*server\.gave-up/m);
    expect(stdout).toMatch(/^launch 1 .*\n {9}crashed/m);
    expect(code).toBe(1);
    project.expectNothingLeft();
  });

  test('is stopped by Ctrl-C in the middle of a start, and nothing is left of it', async () => {
    const project = storyProject(0.88);
    const running = project.begin();
    await running.line(/launch 1 started/);
    running.kill('SIGINT');
    expect((await running.ended).code).toBe(130);
    project.expectNothingLeft();
  });

  test('of a run with attached servers alone is refused', async () => {
    const project = storyProject(0.88, { engine: 'sglang', name: 's', attach: 'http://127.0.0.1:9' });
    const { code, stderr } = await project.rehearse();
    expect(code, stderr).toBe(2);
    expect(stderr).toContain('no server that a rehearsal could play');
    project.expectNothingLeft();
  });
});
