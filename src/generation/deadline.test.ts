/** The last guard against a request that is never answered: generous, and the run file's own limit where it names one. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { TurnRequest } from '../engine/dialect.ts';
import { computeDeadlineMs, deadlineOf } from './deadline.ts';

test('an answer alone has a second a token, five prompt bytes a second, and five minutes', () => {
  expect(computeDeadlineMs({ maxTokens: 1000, promptBytes: 2000, inFlight: 1, sequences: 0 })).toBe(300_000 + 1_400_000);
});

test('where the engine says how many it works on at once, the queue is counted', () => {
  const asked = { maxTokens: 100, promptBytes: 0, inFlight: 64 };
  expect(computeDeadlineMs({ ...asked, sequences: 8 })).toBe(300_000 + 8 * 100_000);
  expect(computeDeadlineMs({ ...asked, sequences: 0 })).toBe(300_000 + 100_000);
});

test('more of anything never shortens it', () => {
  const asked = fc.record({
    maxTokens: fc.integer({ min: 1, max: 1e6 }),
    promptBytes: fc.nat(1e7),
    inFlight: fc.integer({ min: 1, max: 4096 }),
    sequences: fc.integer({ min: 1, max: 256 }),
  });
  fc.assert(
    fc.property(asked, fc.constantFrom('maxTokens', 'promptBytes', 'inFlight'), (given, key) => {
      expect(computeDeadlineMs({ ...given, [key]: given[key] * 2 })).toBeGreaterThanOrEqual(computeDeadlineMs(given));
    }),
  );
});

test('the run file’s attempt-timeout goes before all that', () => {
  const sampling = { temperature: 1, topP: 1, topK: 0, maxTokens: 100, seed: 0, stop: [] };
  const request: TurnRequest = {
    ...{
      model: 'm',
      tools: [],
      messages: [{ role: 'user', content: 'x'.repeat(200) }],
      sampling,
      seed: 1,
      templateKwargs: {},
      extraBody: {},
    },
  };
  expect(deadlineOf(request, { run: { attemptTimeoutMs: 5_000 }, inFlight: 8, sequences: 1 })).toBe(5_000);
  expect(deadlineOf(request, { run: { attemptTimeoutMs: 0 }, inFlight: 2, sequences: 1 })).toBe(300_000 + 2 * 140_000);
});
