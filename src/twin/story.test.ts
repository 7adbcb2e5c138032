/** The figures of the design's story, played. */
import { describe, expect, test } from 'vitest';
import {
  BF16_BYTES,
  BF16_POINT,
  FP8_BYTES,
  FP8_POINT,
  fitStory,
  IN_FLIGHT,
  STORY_LOAD,
  storyGain,
  storyServer,
  storyStepTime,
} from '../../test/support/story.ts';
import { withKvBytes } from './calibrate.ts';
import { drawRequests } from './lengths.ts';
import { playLoad } from './play-load.ts';
import { predictRunning } from './predict-running.ts';
import { seededRandom } from './seeded-random.ts';
import { difference } from './tally.ts';
import { Twin } from './twin.ts';

const stepTime = storyStepTime();
const fp8Server = storyServer(FP8_POINT.poolTokens, withKvBytes(stepTime, BF16_BYTES, FP8_BYTES));
const closed = { kind: 'closed', inFlight: IN_FLIGHT } as const;

describe('94 were predicted from final lengths, 134 to 150 were seen', () => {
  // Prompts of 400 and answers of 2,400 to 4,800: 4,000 tokens when they end.
  const requests = drawRequests(
    {
      ...{ count: 2500, prompt: { kind: 'fixed', tokens: 400 }, output: { kind: 'uniform', least: 2400, most: 4800 } },
      ...{ maxNewTokens: 4800, commonPrefixTokens: 0 },
    },
    seededRandom(1),
  );
  const played = playLoad(fp8Server, { requests, arrivals: closed });

  test('the final length gives 94', () => {
    const final =
      requests.reduce((sum, { promptTokens, outputTokens }) => sum + promptTokens + outputTokens, 0) / requests.length;
    expect(Math.round(FP8_POINT.poolTokens / final)).toBe(94);
  });

  test('the twin runs 134 to 150 of them at once', () => {
    expect(played.steady?.running).toBeGreaterThan(134);
    expect(played.steady?.running).toBeLessThanOrEqual(150);
    expect(played.peakRunning).toBeLessThanOrEqual(IN_FLIGHT);
  });

  test('because the mean live context divides the pool, and the twin sees the same one', () => {
    const estimate = predictRunning(fp8Server, requests, IN_FLIGHT);
    expect(estimate.liveContextTokens).toBeGreaterThan(2200);
    expect(estimate.liveContextTokens).toBeLessThan(2300);
    expect(Math.abs((played.steady?.liveContextTokens ?? 0) / estimate.liveContextTokens - 1)).toBeLessThan(0.05);
    expect(Math.abs((played.steady?.running ?? 0) / estimate.running - 1)).toBeLessThan(0.05);
  });

  test('with spread lengths the same mean final length really gives fewer', () => {
    const spread = drawRequests(
      {
        ...{ count: 4000, prompt: { kind: 'fixed', tokens: 400 }, maxNewTokens: 16_384, commonPrefixTokens: 0 },
        output: { kind: 'lognormal', mean: 3600, sigma: 0.83, most: 16_384 },
      },
      seededRandom(2),
    );
    const { steady } = playLoad(fp8Server, { requests: spread, arrivals: closed });
    const estimate = predictRunning(fp8Server, spread, IN_FLIGHT);
    expect(estimate.limitedBy).toBe('pool');
    expect(Math.abs((steady?.running ?? 0) / estimate.running - 1)).toBeLessThan(0.08);
    expect(steady?.running).toBeLessThan(110);
  });
});

describe('one distribution, fitted on 0.88 bf16 and used unchanged on 0.90 fp8', () => {
  const fitted = fitStory(stepTime, 1);
  const played = playLoad(fp8Server, { requests: drawRequests(fitted.load, seededRandom(11)), arrivals: closed });

  test('explains the bf16 launch', () => {
    const { steady } = fitted.played;
    expect(steady?.running).toBeGreaterThan(34);
    expect(steady?.running).toBeLessThan(35);
    expect(steady?.queued).toBeGreaterThan(115);
    expect(steady?.queued).toBeLessThan(116);
    expect(Math.abs((steady?.tokensPerSecond ?? 0) / BF16_POINT.tokensPerSecond - 1)).toBeLessThan(0.05);
    expect(fitted.played.isClientLimited).toBe(false);
  });

  test('misses the fp8 launch: it gives what the pool alone gives', () => {
    const byPool = BF16_POINT.running * storyGain().dtypeFactor * storyGain().largerPoolFactor;
    const { running = 0, queued = 0 } = played.steady ?? {};
    expect(Math.abs(running / byPool - 1)).toBeLessThan(0.06);
    expect(running).toBeLessThan(0.7 * FP8_POINT.running);
    expect(queued).toBeGreaterThan(50);
    expect(played.isClientLimited).toBe(false);
  });

  test('whose figures are those of the first minutes, when all requests are young', () => {
    const requests = drawRequests(fitted.load, seededRandom(11));
    let sent = IN_FLIGHT;
    const twin: Twin = new Twin(fp8Server, {
      onEvent: ({ kind }) => {
        const next = kind === 'ended' ? requests[sent++] : undefined;
        if (next !== undefined) twin.submit(next);
      },
    });
    for (const request of requests.slice(0, IN_FLIGHT)) twin.submit(request);
    twin.advance(60);
    const before = twin.sums;
    twin.advance(300);
    const { seconds, runningSeconds } = difference(twin.sums, before);
    expect(runningSeconds / seconds).toBeGreaterThan(134);
    expect(runningSeconds / seconds).toBeLessThanOrEqual(150);
  });

  test('and the gain is split into what follows and what is confounded', () => {
    const gain = storyGain();
    expect(gain.dtypeFactor).toBe(2);
    expect(gain.largerPoolFactor).toBeCloseTo(1.18, 2);
    expect(gain.confoundedFactor).toBeCloseTo(gain.runningFactor / 2.361, 2);
    expect(gain.isClientLimited).toBe(true);
    expect(gain.lines.join('\n')).toMatch(
      /2\.00x is the KV type[\s\S]*1\.18x is a larger pool[\s\S]*confounded[\s\S]*client-limited/,
    );
  });
});

test('the client asks for no more than the fp8 pool holds: queue 0 at its own limit is called client-limited', () => {
  const requests = drawRequests(
    { ...STORY_LOAD, count: 2000, output: { kind: 'uniform', least: 500, most: 2500 } },
    seededRandom(3),
  );
  const played = playLoad(fp8Server, { requests, arrivals: closed });
  expect(played.isClientLimited).toBe(true);
  expect(played.steady?.queued).toBeLessThan(0.5);
  expect(playLoad(storyServer(BF16_POINT.poolTokens, stepTime), { requests, arrivals: closed }).isClientLimited).toBe(false);
});
