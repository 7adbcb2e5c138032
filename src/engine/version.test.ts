import { expect, test } from 'vitest';
import { isAtLeast } from './version.ts';

test.each([
  ['0.10.2', true],
  ['v0.10.2', true],
  ['0.10.2.post1', true],
  ['0.10.1.1', false],
  ['0.9.99', false],
  ['0.11', true],
  ['1.0.0+cu128', true],
  ['0.10', false],
  ['', undefined],
  ['main', undefined],
  ['dev-0.10.2', undefined],
])('%s is at least 0.10.2: %s', (version, isIt) => {
  expect(isAtLeast(version, [0, 10, 2])).toBe(isIt);
});
