import { expect, test } from 'vitest';
import { needsHealth, stepFor, whyHeldBack } from './watch-steps.ts';

const WELL = { wasWell: true, verdict: { state: 'ready', stillForMs: 0 }, isRefused: false, countersWaitMs: 0 } as const;

test('a server that is well is not asked for a token; one that stands, or whose counters fail, is', () => {
  expect(needsHealth(WELL)).toBe(false);
  expect(needsHealth({ ...WELL, verdict: { state: 'serving', stillForMs: 59_000 } })).toBe(false);
  expect(needsHealth({ ...WELL, verdict: { state: 'serving', stillForMs: 61_000 } })).toBe(true);
  expect(needsHealth({ ...WELL, verdict: { state: 'unresponsive', stillForMs: 0 } })).toBe(true);
  expect(needsHealth({ ...WELL, verdict: undefined })).toBe(true);
  expect(needsHealth({ ...WELL, wasWell: false })).toBe(true);
  expect(needsHealth({ ...WELL, isRefused: true })).toBe(true);
  expect(needsHealth({ ...WELL, countersWaitMs: 11_000 })).toBe(true);
});

test.each([
  ['hung', 'high', false, 'cut'],
  ['hung', 'medium', false, 'none'],
  ['crashed', 'medium', false, 'none'],
  ['crashed', 'medium', true, 'cut'],
  ['crashed', 'high', false, 'cut'],
  ['stopped', 'high', true, 'cut'],
  ['absent', 'medium', false, 'look-anew'],
  ['unresponsive', 'high', false, 'none'],
  ['degraded', 'high', false, 'none'],
  ['initializing', 'high', false, 'none'],
  ['serving', 'high', false, 'none'],
] as const)('%s, %s, its process gone: %s → %s', (state, confidence, isGone, step) => {
  expect(stepFor({ state, confidence }, isGone)).toBe(step);
});

test('nothing is sent to one that hangs for sure, whatever its health says', () => {
  const hung = { state: 'hung', confidence: 'high', title: 'no token moves', cause: 'stuck' } as const;
  expect(whyHeldBack(hung)).toBe('it hangs: no token moves (stuck)');
  expect(whyHeldBack({ ...hung, confidence: 'medium' })).toBe('');
  expect(whyHeldBack({ ...hung, state: 'crashed' })).toBe('');
  expect(whyHeldBack(undefined)).toBe('');
});
