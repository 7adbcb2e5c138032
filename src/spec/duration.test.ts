import { expect, it } from 'vitest';
import { parseDuration } from './duration.ts';

it('reads a number with its unit and nothing else', () => {
  expect(['500ms', '90s', '15m', '15 min', '1.5h', ' 2h '].map(parseDuration)).toEqual([
    500, 90_000, 900_000, 900_000, 5_400_000, 7_200_000,
  ]);
  expect(['90', '', '0s', '-1s', '1d', '1h30m', '25h25h', '999h'].map(parseDuration)).toEqual(Array(8).fill(undefined));
});
