import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { countEdits, findNearest } from './nearest.ts';

const KEYS = [
  'run',
  'model',
  'servers',
  'policy',
  'sampling',
  'partitions',
  'in-flight',
  'max-tokens',
  'top-p',
  'by',
  'temperature',
];

describe('findNearest', () => {
  it.each([
    ['temprature', 'temperature'],
    ['tempertaure', 'temperature'],
    ['maxTokens', 'max-tokens'],
    ['max_tokens', 'max-tokens'],
    ['inflight', 'in-flight'],
    ['TOP_P', 'top-p'],
    ['modle', 'model'],
    ['server', 'servers'],
    ['bye', 'by'],
    ['x', undefined],
    ['zz', undefined],
    ['learning-rate', undefined],
    ['', undefined],
  ])('%s → %s', (word, near) => {
    expect(findNearest(word, KEYS)).toBe(near);
  });

  it('finds a key of five letters or more behind any single slip', () => {
    const long = KEYS.filter((key) => key.length >= 5);
    fc.assert(
      fc.property(fc.constantFrom(...long), fc.nat(), fc.constantFrom('delete', 'double', 'swap'), (key, where, slip) => {
        const at = where % (key.length - 1);
        const rest = key.slice(at + 1);
        const slipped = {
          delete: key.slice(0, at) + rest,
          double: key.slice(0, at + 1) + key[at] + rest,
          swap: key.slice(0, at) + rest[0] + key[at] + rest.slice(1),
        };
        expect(findNearest(slipped[slip as 'swap'], KEYS)).toBe(key);
      }),
    );
  });
});

describe('countEdits', () => {
  it('is a distance', () => {
    const word = fc.string({ maxLength: 8 });
    fc.assert(
      fc.property(word, word, (a, b) => {
        expect(countEdits(a, b)).toBe(countEdits(b, a));
        expect(countEdits(a, b) === 0).toBe(a === b);
        expect(countEdits(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length));
      }),
    );
  });
});
