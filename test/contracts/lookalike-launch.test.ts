/** The lookalike as a launcher: the whole start of a real server as its log, its port and its processes show it. */
import { describe, expect, test } from 'vitest';
import { verdictOf } from '../support/diagnose-log.ts';
import { KIMI, STORY, startLaunch } from '../support/launch-bench.ts';

describe('the story of DESIGN §1, by arithmetic', () => {
  test.each([
    ['0.85', 'auto', 116_171, '8.30'],
    ['0.88', 'auto', 159_277, '5.47'],
    ['0.90', 'fp8_e4m3', 376_029, '3.52'],
    ['0.93', 'auto', 231_120, '0.82'],
  ])('at %s with KV type %s: %d tokens, %s GB left', async (fraction, type, tokens, left) => {
    const launch = await startLaunch({
      scenario: STORY,
      flags: [...KIMI, '--mem-fraction-static', fraction, '--kv-cache-dtype', type],
    });
    await launch.until('fired up');
    expect(launch.log()).toContain(`max_total_num_tokens=${tokens}, `);
    expect(launch.log()).toContain(`available_gpu_mem=${left} GB`);
    const { state, cause, facts } = verdictOf(launch.log());
    expect({ state, cause }).toEqual({ state: 'serving', cause: 'none' }); // its own warm-up request was answered
    expect(facts).toMatchObject({
      freeBeforeLoadGiB: 94.04,
      weightsGiBPerGpu: 72.33,
      poolTokens: tokens,
      freeAfterGraphsGiB: Number(left),
      maxRunningRequests: 2048,
      contextTokens: 262_144,
      kvCacheDtype: type === 'auto' ? 'torch.bfloat16' : 'torch.float8_e4m3fn',
    });
  });
});

test('the port is refused while it loads, open and 503 in its own warm-up, then 200 with an empty body', async () => {
  const launch = await startLaunch({
    scenario: { ...STORY, phases: { 'weight-loading': { seconds: 600 }, warmup: { seconds: 3600 } } },
    flags: [...KIMI, '--mem-fraction-static', '0.88'],
  });
  await launch.until('Load weight begin');
  expect(await launch.health()).toBe('refused');
  await launch.until('Uvicorn running');
  expect(await launch.health()).toEqual({ status: 503, body: '' });
  await launch.until('fired up');
  expect(await launch.health()).toEqual({ status: 200, body: '' });
});
