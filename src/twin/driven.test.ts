/** What a driver in real time hangs on: prefills are told before they are computed, and a time is named for so many steps. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { closedLoop, EVEN, playTwin, request } from '../../test/support/play-twin.ts';
import { runs } from '../../test/support/property-runs.ts';
import { type TwinCase, twinCases } from '../../test/support/twin-cases.ts';
import { newTokenRatioOf, SGLANG_RULES } from './server.ts';
import { Twin } from './twin.ts';
import type { PrefillBatch, TwinEvent } from './twin-event.ts';

/** Each batch is heard twice: when it begins and when it has ended. */
function hear({ server, load }: TwinCase) {
  const begun: PrefillBatch[] = [];
  const ended: Extract<TwinEvent, { kind: 'prefill' }>[] = [];
  const twin = new Twin(server, {
    onPrefill(batch) {
      expect(begun.length).toBe(ended.length);
      expect(batch.usedTokens).toBeGreaterThanOrEqual(0);
      expect(batch.usedTokens + batch.newTokens).toBeLessThanOrEqual(server.poolTokens);
      begun.push(batch);
    },
    onEvent: (event) => void (event.kind === 'prefill' && ended.push(event)),
  });
  for (const one of load.requests) twin.submit(one);
  twin.advance();
  return { begun, ended };
}

test('each prefill batch is told before it is computed, as it is told afterwards', () => {
  let batches = 0;
  fc.assert(
    fc.property(twinCases, (given) => {
      const { begun, ended } = hear(given);
      batches += begun.length;
      expect(begun.map(({ newSequences, newTokens, cachedTokens }) => ({ newSequences, newTokens, cachedTokens }))).toEqual(
        ended.map(({ newSequences, newTokens, cachedTokens }) => ({ newSequences, newTokens, cachedTokens })),
      );
      for (const [nth, { at, seconds }] of ended.entries()) expect(begun[nth]?.at).toBeCloseTo(at - seconds, 8);
    }),
    { numRuns: runs(150) },
  );
  expect(batches).toBeGreaterThan(100);
});

test('the time of the fortieth step is where forty tokens are there, and an ending before it comes first', () => {
  const prefill = { perTokenSeconds: 0.001, perTokenPairSeconds: 0, leastSeconds: 0 };
  const twin = new Twin({ ...EVEN, stepTime: { ...EVEN.stepTime, prefill } });
  expect(twin.timeAfterSteps(40)).toBe(Number.POSITIVE_INFINITY);
  twin.submit(request('long', 5, 90));
  twin.submit(request('short', 5, 20));
  twin.advance(0);
  expect(twin.timeAfterSteps(40)).toBe(Number.POSITIVE_INFINITY); // its prompt is being computed
  twin.advance(twin.nextChangeAt);
  expect(twin.producedBy('long')).toBe(1);
  const fortieth = twin.timeAfterSteps(40);
  expect(twin.nextChangeAt).toBeLessThan(fortieth);
  twin.advance(fortieth);
  expect(twin.producedBy('short')).toBeUndefined();
  expect(twin.producedBy('long')).toBe(41);
});

test('a retraction says what it gained', () => {
  // Bold from the start: more are admitted than the pool can hold to their ends.
  const rules = { ...SGLANG_RULES, newTokenRatio: { ...newTokenRatioOf(0.3), decayPerStep: 0.005 } };
  const requests = Array.from({ length: 30 }, (_, nth) => request(String(nth), 4, 20 + ((nth * 17) % 41), { maxNewTokens: 60 }));
  const { events } = playTwin(closedLoop({ ...EVEN, rules }, requests));
  const gained = events.flatMap((event) => (event.kind === 'retracted' ? [event.gainedTokens] : []));
  expect(gained.length).toBeGreaterThan(0);
  for (const tokens of gained) expect(tokens).toBeGreaterThanOrEqual(4);
});
