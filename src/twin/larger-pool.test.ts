import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { closedLoop, EVEN, playTwin, request } from '../../test/support/play-twin.ts';
import { runs } from '../../test/support/property-runs.ts';
import { type TwinCase, twinCases } from '../../test/support/twin-cases.ts';

describe('a larger pool', () => {
  const seconds = (given: TwinCase) => playTwin(given).twin.sums.seconds;
  const longest = ({ load }: TwinCase) => Math.max(...load.requests.map((each) => each.promptTokens + each.maxNewTokens));
  /** Every request that may be there at once fits with all that it may ask for. */
  const enoughFor = (given: TwinCase) => {
    const atOnce = given.load.arrivals.kind === 'closed' ? given.load.arrivals.inFlight : given.load.requests.length;
    return (atOnce + 1) * (longest(given) + 2 * given.server.pageTokens) + 4096;
  };
  const withPool = ({ server, load }: TwinCase, poolTokens: number): TwinCase => ({ server: { ...server, poolTokens }, load });

  test('changes nothing once everybody fits', () => {
    fc.assert(
      fc.property(twinCases, fc.integer({ min: 1, max: 9 }), (drawn, factor) => {
        const given = { ...drawn, server: { ...drawn.server, prefixCache: false, hostTier: undefined } };
        const enough = enoughFor(given);
        expect(seconds(withPool(given, enough * factor))).toBe(seconds(withPool(given, enough)));
      }),
      { numRuns: runs(100) },
    );
  });

  test('that holds everybody is never later than one that refuses, where a step costs the same for all and nobody was retracted', () => {
    let compared = 0;
    fc.assert(
      fc.property(twinCases, (drawn) => {
        // In an open load an arrival may meet a later edge between two steps: the law holds up to one step there.
        if (drawn.server.rules.engine !== 'sglang' || drawn.load.arrivals.kind === 'open') return;
        const rules = { ...drawn.server.rules, mixedChunk: false };
        const given = { ...drawn, server: { ...EVEN, poolTokens: drawn.server.poolTokens, prefixCache: false, rules } };
        const small = withPool(given, Math.max(given.server.poolTokens, longest(given) + 8));
        const { twin, retracted } = playTwin(small);
        if (retracted.length > 0) return;
        compared += 1;
        expect(seconds(withPool(given, enoughFor(given)))).toBeLessThanOrEqual(twin.sums.seconds + 1e-9);
      }),
      { numRuns: runs(800) },
    );
    expect(compared).toBeGreaterThan(30);
  });

  test('is later where its larger batch has no captured graph', () => {
    const requests = Array.from({ length: 8 }, (_, nth) => request(String(nth), 10, 40));
    const stepTime = { ...EVEN.stepTime, eagerSeconds: 0.03 };
    const given = closedLoop({ ...EVEN, prefixCache: false, graphBatchSizes: [1, 2, 4], stepTime }, requests);
    expect(seconds(withPool(given, 210))).toBeCloseTo(2 * 39 * 0.01, 9);
    expect(seconds(withPool(given, 1000))).toBeCloseTo(39 * 0.04, 9);
  });
});
