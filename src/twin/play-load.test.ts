import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EVEN, playTwin, request } from '../../test/support/play-twin.ts';
import { runs } from '../../test/support/property-runs.ts';
import { twinCases } from '../../test/support/twin-cases.ts';
import { playLoad } from './play-load.ts';
import { VLLM_RULES } from './server.ts';

describe('a played load', () => {
  test('is what the twin does, and its timeline adds up to it', () => {
    fc.assert(
      fc.property(twinCases, (given) => {
        const played = playLoad(given.server, given.load);
        const { twin, endings } = playTwin(given);
        expect(played.seconds).toBeCloseTo(twin.now, 8);
        expect(played.generatedTokens).toBe(twin.sums.generatedTokens);
        expect(Object.values(played.ended).reduce((sum, count) => sum + count, 0)).toBe(endings.length);
        const total = (value: 'running' | 'queued' | 'tokensPerSecond') =>
          played.timeline.reduce((sum, slice) => sum + slice[value] * slice.seconds, 0);
        expect(total('running')).toBeCloseTo(twin.sums.runningSeconds, 5);
        expect(total('tokensPerSecond')).toBeCloseTo(played.generatedTokens, 3);
        // What waits between an arrival and the end of the running step is in the sums, but in no slice.
        expect(total('queued')).toBeLessThanOrEqual(twin.sums.queuedSeconds + 1e-6);
        const { whole, steady } = played;
        for (const measures of [whole, ...(steady === undefined ? [] : [steady])]) {
          expect(measures.poolUse).toBeLessThanOrEqual(1);
          expect(measures.cacheHitRate).toBeLessThanOrEqual(1);
          expect(measures.hostHitRate).toBeLessThanOrEqual(measures.cacheHitRate + 1e-12);
          expect(measures.prefillTimeShare).toBeLessThanOrEqual(1 + 1e-12);
        }
      }),
      { numRuns: runs(200) },
    );
  });

  test('keeps the client inside its own limit when requests come at their own times', () => {
    const requests = Array.from({ length: 20 }, (_, nth) => request(String(nth), 5, 20));
    const arrivals = { kind: 'open', atSeconds: requests.map((_, nth) => nth * 0.001), inFlight: 3 } as const;
    const played = playLoad({ ...EVEN, poolTokens: 5000 }, { requests, arrivals });
    expect(played.ended.finished).toBe(20);
    expect(played.peakRunning).toBe(3);
    // 20 of them, 3 at a time: at least 7 rounds of 19 decode steps.
    expect(played.seconds).toBeGreaterThanOrEqual(7 * 19 * 0.01 - 1e-9);
  });

  test('has no steady middle where everything is sent at once', () => {
    const requests = [request('0', 5, 20), request('1', 5, 20)];
    expect(playLoad(EVEN, { requests, arrivals: { kind: 'closed', inFlight: 5 } }).steady).toBeUndefined();
  });

  test('of nothing is nothing', () => {
    const played = playLoad(EVEN, { requests: [], arrivals: { kind: 'closed', inFlight: 5 } });
    expect(played).toMatchObject({ seconds: 0, generatedTokens: 0, timeline: [], isClientLimited: false, steady: undefined });
  });

  test('under vLLM preempts where SGLang reserves: the pool is fuller, and more is computed again', () => {
    const requests = Array.from({ length: 300 }, (_, nth) => request(String(nth), 10, 30 + ((nth * 37) % 60)));
    const arrivals = { kind: 'closed', inFlight: 30 } as const;
    const roomy = { ...EVEN, poolTokens: 1000, maxRunningRequests: 64 };
    const [sglang, vllm] = [roomy, { ...roomy, rules: VLLM_RULES }].map((server) => playLoad(server, { requests, arrivals }));
    expect(vllm?.whole.retractions).toBeGreaterThan(sglang?.whole.retractions ?? 0);
    expect(vllm?.whole.poolUse).toBeGreaterThan(sglang?.whole.poolUse ?? 1);
    expect(vllm?.recomputedTokens).toBeGreaterThan(0);
  });
});
