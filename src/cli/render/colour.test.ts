import { expect, test } from 'vitest';
import { isColourWanted } from './colour.ts';

test('colour is for terminals, and the two variables go before that', () => {
  expect(isColourWanted({}, true)).toBe(true);
  expect(isColourWanted({ CI: 'true' }, false)).toBe(false);
  expect(isColourWanted({ TERM: 'dumb' }, true)).toBe(false);
  expect(isColourWanted({ FORCE_COLOR: '1' }, false)).toBe(true);
  expect(isColourWanted({ FORCE_COLOR: '0' }, true)).toBe(false);
  expect(isColourWanted({ NO_COLOR: '1', FORCE_COLOR: '1' }, true)).toBe(false);
});
