import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fromPrinted, rangeOf } from './intervals.ts';
import { type Bound, solveMemory } from './solve-memory.ts';

function solve(bounds: readonly Bound[]) {
  const region = solveMemory(bounds);
  if (region === undefined) throw new Error('no region');
  return region;
}

const near = (value: number, by: number) => ({ low: value - by, high: value + by });

it('finds the extremes of another sum from two bounds', () => {
  const region = solve([
    { x: 1, y: 0, range: near(94, 1) },
    { x: 1, y: -1, range: near(72, 2) },
  ]);
  expect(region.slack).toBe(0);
  expect(region.extremes(0, 1)).toEqual({ low: 19, high: 25 });
  expect(region.extremes(1, 0)).toEqual({ low: 93, high: 95 });
});

it('widens bounds that contradict each other, and says by how much', () => {
  const region = solve([
    { x: 1, y: 0, range: near(94.14, 0.005) },
    { x: 1, y: -1, range: near(72.33, 0.005) },
    { x: 0, y: 1, range: near(21.9, 0.005) },
  ]);
  expect(region.slack).toBeGreaterThan(0);
  expect(region.slack).toBeLessThan(0.1);
});

it('holds the truth whatever is measured and however it is rounded', () => {
  const gib = fc.double({ min: 1, max: 250, noNaN: true });
  const fraction = fc.double({ min: 0.5, max: 0.97, noNaN: true });
  fc.assert(
    fc.property(gib, fc.double({ min: 0.05, max: 0.95, noNaN: true }), fraction, fraction, (before, share, one, other) => {
      const after = before * share;
      const rest = (at: number) => after - before * (1 - at);
      const round = (value: number) => rangeOf(fromPrinted(Number(value.toFixed(2))));
      const region = solve([
        { x: 1, y: 0, range: round(before) },
        { x: -(1 - one), y: 1, range: near(rest(one), 1e-5) },
      ]);
      const { low, high } = region.extremes(-(1 - other), 1);
      expect(low).toBeLessThanOrEqual(rest(other) + 1e-6);
      expect(high).toBeGreaterThanOrEqual(rest(other) - 1e-6);
      expect(high - low).toBeLessThanOrEqual(0.0101 * Math.abs(one - other) + 1e-4);
    }),
  );
});

it('has no answer for facts that no rounding explains', () => {
  const far = [
    { x: 1, y: 0, range: near(94, 0.005) },
    { x: 0, y: 1, range: near(21, 0.005) },
    { x: 1, y: -1, range: near(10, 0.005) },
  ];
  expect(solveMemory(far)).toBeUndefined();
});
