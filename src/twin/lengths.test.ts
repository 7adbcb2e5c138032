import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  drawLength,
  drawRequests,
  type Lengths,
  liveContextTokens,
  meanAheadTokens,
  parseLengths,
  sigmaOfCv,
} from './lengths.ts';
import { seededRandom } from './seeded-random.ts';

const draws = (lengths: Lengths, count = 40_000) => {
  const random = seededRandom(1);
  return Array.from({ length: count }, () => drawLength(lengths, random));
};
const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

describe('lengths', () => {
  test.each([
    ['lognormal:4000,0.8', { kind: 'lognormal', mean: 4000, sigma: 0.8, most: Number.POSITIVE_INFINITY }],
    ['lognormal:mean=4_000,sigma=0.8,max=8192', { kind: 'lognormal', mean: 4000, sigma: 0.8, most: 8192 }],
    [' uniform:200,8000 ', { kind: 'uniform', least: 200, most: 8000 }],
    ['fixed:4000', { kind: 'fixed', tokens: 4000 }],
    ['fixed:tokens=12', { kind: 'fixed', tokens: 12 }],
  ])('reads %s', (text, expected) => expect(parseLengths(text)).toEqual(expected));

  test.each([
    '',
    'lognormal',
    'lognormal:4000',
    'lognormal:4000,0.8,9,9',
    'lognormal:mean=many,sigma=1',
    'normal:3,4',
    'fixed:0',
    'uniform:9,3',
    'uniform:5',
    'fixed:tokens=-3',
    'lognormal:4000,0.8,sd=3',
  ])('says what is wrong with "%s"', (text) => expect(parseLengths(text)).toHaveProperty('problem'));

  test('no text makes it throw', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(typeof parseLengths(`lognormal:${text}`)).toBe('object');
      }),
    );
  });

  test('a lognormal has the mean and the spread that were written', () => {
    const values = draws({ kind: 'lognormal', mean: 4000, sigma: sigmaOfCv(1), most: Number.POSITIVE_INFINITY });
    expect(mean(values)).toBeGreaterThan(3900);
    expect(mean(values)).toBeLessThan(4100);
    const middle = mean(values);
    const spread = Math.sqrt(mean(values.map((value) => (value - middle) ** 2))) / middle;
    expect(spread).toBeGreaterThan(0.9);
    expect(spread).toBeLessThan(1.1);
    expect(Math.max(...draws({ kind: 'lognormal', mean: 4000, sigma: 1, most: 8192 }))).toBe(8192);
  });

  test('an empirical list gives its own lengths', () => {
    expect(new Set(draws({ kind: 'empirical', tokens: [3, 5, 8] }, 200))).toEqual(new Set([3, 5, 8]));
  });

  test('the live context of equal answers is prompt + half, of spread ones (deviation = mean) prompt + a whole mean', () => {
    const load = { count: 60_000, prompt: { kind: 'fixed', tokens: 500 }, maxNewTokens: 1e6, commonPrefixTokens: 0 } as const;
    const equal = drawRequests({ ...load, count: 10, output: { kind: 'fixed', tokens: 4000 } }, seededRandom(1));
    expect(liveContextTokens(equal)).toBe(2500);
    const spread = drawRequests(
      { ...load, output: { kind: 'lognormal', mean: 4000, sigma: sigmaOfCv(1), most: 1e6 } },
      seededRandom(1),
    );
    expect(liveContextTokens(spread) / 4500).toBeGreaterThan(0.95);
    expect(liveContextTokens(spread) / 4500).toBeLessThan(1.05);
  });

  test('the mean of what may still be asked for is that of a walk over all tokens', () => {
    const request = fc.record({ outputTokens: fc.integer({ min: 1, max: 200 }), spare: fc.integer({ min: 0, max: 100 }) });
    fc.assert(
      fc.property(fc.array(request, { minLength: 1, maxLength: 5 }), fc.integer({ min: 1, max: 250 }), (drawn, clip) => {
        const requests = drawn.map(({ outputTokens, spare }) => ({ outputTokens, maxNewTokens: outputTokens + spare }));
        let [sum, count] = [0, 0];
        for (const { outputTokens, maxNewTokens } of requests)
          for (let produced = 0; produced < outputTokens; produced++) {
            sum += Math.min(maxNewTokens - produced, clip);
            count += 1;
          }
        // The closed form takes the middle of each falling step: half a token at most, and what sums of doubles round away.
        expect(Math.abs(meanAheadTokens(requests, clip) - sum / count)).toBeLessThanOrEqual(0.5 + 1e-9);
      }),
    );
  });
});
