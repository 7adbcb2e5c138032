/** What the lookalike writes as a launcher, read by diagnosis: every version's start, whole and cut at any line. */
import { describe, expect, test } from 'vitest';
import { accountOf, verdictOf } from '../support/diagnose-log.ts';
import { KIMI, STORY, startLaunch } from '../support/launch-bench.ts';

const QWEN = ['--tensor-parallel-size', '2', '--max-model-len', '32768'];
const ON_H100 = { machine: { gpu: 'H100' } };

const STARTS: [as: string, scenario: object, flags: string[]][] = [
  ['sglang@0.4.6', STORY, [...KIMI, '--mem-fraction-static', '0.88', '--trust-remote-code']],
  ['sglang@0.5.4', STORY, [...KIMI, '--mem-fraction-static', '0.88', '--enable-hierarchical-cache', '--hicache-size=48']],
  ['sglang@0.5.9', STORY, ['--model', 'moonshotai/Kimi-K2.5', '--tensor-parallel-size=8', '--mem-frac', '0.88']],
  ['sglang@0.5.18', STORY, [...KIMI, '--mem-fraction-static', '0.88', '--cuda-graph-max-bs-decode', '128']],
  ['sglang@0.5.8', ON_H100, ['--model-path', 'Qwen/Qwen3-8B', '--disable-cuda-graph', '--skip-server-warmup']],
  ['vllm@0.10.1.1', ON_H100, ['serve', 'Qwen/Qwen3-8B', ...QWEN]],
  ['vllm@0.16.0', ON_H100, ['Qwen/Qwen3-8B', ...QWEN, '--gpu_memory_utilization', '0.85']],
  ['vllm@0.21.0', ON_H100, ['--model', 'Qwen/Qwen3-8B', '--enforce-eager']],
];

const READY = { sglang: 'fired up and ready', vllm: 'Application startup complete' };

describe.each(STARTS)('%s', (as, scenario, flags) => {
  test('is ready with nothing wrong, and on its way at every cut before', async () => {
    const engine = as.startsWith('vllm') ? 'vllm' : 'sglang';
    const launch = await startLaunch({ as, scenario, flags, clockRate: 1200 });
    await launch.until(READY[engine]);
    const whole = verdictOf(launch.log());
    expect({ state: whole.state, cause: whole.cause }).toEqual({
      state: expect.stringMatching(/^(ready|serving)$/),
      cause: 'none',
    });
    expect(whole.facts).toMatchObject({ engine, isReady: true });
    const lines = launch.log().split('\n');
    const ready = lines.findIndex((line) => line.includes(READY[engine]));
    const seen: string[] = [];
    for (let cut = 1; cut <= ready; cut += 1) {
      const { state, cause, phase } = verdictOf(`${lines.slice(0, cut).join('\n')}\n`);
      expect({ cut: lines[cut - 1], state, cause }).toMatchObject({
        state: expect.stringMatching(/^(initializing|serving)$/), // its own warm-up is answered just before it says that it is ready
        cause: expect.stringMatching(/^(none|slow-storage)$/),
      });
      if (seen.at(-1) !== phase && phase !== '') seen.push(phase);
    }
    expect(new Set(seen).size).toBe(seen.length); // no phase comes back
    expect(seen).toEqual(expect.arrayContaining(['argument-parsing', 'weight-loading', 'kv-pool-allocation']));
  });
});

test('its figures are those that it prints: a pool of vLLM is the one that was planned', async () => {
  const launch = await startLaunch({
    as: 'vllm@0.21.0',
    scenario: { machine: { gpu: 'H100', weightsGiB: 15.27, activationsGiB: 1.5, outsideTorchGiB: 0.4, graphsGiB: 0.6 } },
    flags: ['Qwen/Qwen3-8B', '--gpu-memory-utilization', '0.9'],
    clockRate: 1200,
  });
  await launch.until('Application startup complete');
  const { facts } = accountOf(launch.log());
  // (81,559 MiB / 1,024 − 0.55 GiB of the driver's) × 0.9 − 15.27 − 1.5 − 0.4 − 0.6, at 147,456 B a token in blocks of 16.
  const GiB = (81_559 / 1024 - 0.55) * 0.9 - 15.27 - 1.5 - 0.4 - 0.6;
  expect(facts).toMatchObject({ weightsGiBPerGpu: 15.27, poolGiB: Number(GiB.toFixed(2)), graphsGiB: 0.6 });
  expect(Math.abs((facts.poolTokens ?? 0) - (GiB * 2 ** 30) / 147_456)).toBeLessThan(16 + 1);
});
