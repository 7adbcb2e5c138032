/** The rate and the time that is left, from the numbers of a run under way. */
import { expect, test } from 'vitest';
import { computeRate, estimateRemaining, type PartitionProgress } from './progress.ts';

const seconds = (partitions: readonly PartitionProgress[], rate: number) => {
  const left = estimateRemaining(partitions, rate);
  return left === undefined ? undefined : [Math.round(left.low / 1000), Math.round(left.high / 1000)];
};

const PARTITION: PartitionProgress = {
  ...{ name: 'B1', enrolled: 1000, enrolmentOpen: false, done: 200, aside: 0, dropped: 0, answers: 200, truncated: 0 },
  ...{ spentTokens: 20_000, budget: 0 },
};

test('the rate is that of the last minute', () => {
  expect(computeRate([])).toBe(0);
  expect(
    computeRate([
      { elapsedMs: 0, tokens: 0 },
      { elapsedMs: 900, tokens: 50 },
    ]),
  ).toBe(0);
  const samples = [0, 30_000, 60_000, 90_000].map((elapsedMs) => ({
    elapsedMs,
    tokens: elapsedMs < 30_001 ? 0 : elapsedMs / 10,
  }));
  expect(computeRate(samples.slice(0, 3))).toBe(100);
  expect(computeRate(samples)).toBe(150);
});

test('the time left is the open prompts at the mean of the done ones, as a range', () => {
  expect(seconds([PARTITION], 100)).toEqual([720, 880]);
  expect(seconds([{ ...PARTITION, aside: 400 }], 100)).toEqual([360, 440]);
});

test('it is at most what the budget leaves, and wider in the beginning', () => {
  expect(seconds([{ ...PARTITION, budget: 30_000 }], 100)).toEqual([90, 110]);
  expect(seconds([{ ...PARTITION, done: 50, enrolled: 100, spentTokens: 5_000 }], 100)).toEqual([35, 65]);
});

test('a partition without answers takes the mean of the whole run', () => {
  const fresh = { ...PARTITION, name: 'B2', done: 0, answers: 0, spentTokens: 0, enrolled: 800 };
  expect(seconds([PARTITION, fresh], 100)).toEqual([1440, 1760]);
});

test('nothing is said before the first answers', () => {
  expect(estimateRemaining([{ ...PARTITION, done: 0 }], 100)).toBeUndefined();
  expect(estimateRemaining([PARTITION], 0)).toBeUndefined();
});
