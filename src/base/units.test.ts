/** Numbers people write with a unit, and numbers people read. */
import { expect, test } from 'vitest';
import { formatBytes, formatCount, formatDuration, formatTokens, parseTokens } from './units.ts';

test.each([
  ['20M', 20_000_000],
  ['20k', 20_000],
  ['1.5M', 1_500_000],
  ['2G', 2e9],
  ['2b', 2e9],
  ['20_000', 20_000],
  [' 7 ', 7],
  ['0.3k', 300],
])('%s is %i tokens', (text, tokens) => {
  expect(parseTokens(text)).toBe(tokens);
});

test.each(['', 'k', '1.5', '-3', '1e6', '20 MB', '0x10', '1.0001k', 'NaN'])('%j is no number of tokens', (text) => {
  expect(parseTokens(text)).toBeUndefined();
});

test('what people read is short and says its unit', () => {
  expect([12_345, 0.6].map(formatCount)).toEqual(['12,345', '1']);
  expect([9_999, 10_000, 12_345, 20_000_000, 1.25e9].map(formatTokens)).toEqual(['9,999', '10k', '12.3k', '20M', '1.3G']);
  expect([0, 1023, 1024, 1.5 * 2 ** 20, 2 ** 30].map(formatBytes)).toEqual(['0 B', '1023 B', '1 KiB', '1.5 MiB', '1 GiB']);
  expect([0, 4_000, 59_499, 60_000, 125_000, 7_200_000, 7_300_000].map(formatDuration)).toEqual([
    '0 s',
    '4 s',
    '59 s',
    '1 min',
    '2 min 5 s',
    '2 h',
    '2 h 1 min',
  ]);
});
