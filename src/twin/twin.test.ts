import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { playStepByStep } from '../../test/support/step-by-step.ts';
import { twinCases, type TwinCase } from '../../test/support/twin-cases.ts';
import { Twin } from './twin.ts';
import type { TwinEvent } from './twin-event.ts';

/** A load driven by hand: what `playLoad` does, with everything that was told. */
function play({ server, load }: TwinCase, advance: (twin: Twin) => void = (twin) => twin.advance()) {
  const events: TwinEvent[] = [];
  let sent = 0;
  const twin: Twin = new Twin(server, {
    onEvent: (event) => {
      events.push(event);
      const next = event.kind === 'ended' ? load.requests[sent++] : undefined;
      if (next !== undefined) twin.submit(next);
    },
    onStretch: () => expect(twin.freeTokens).toBeGreaterThanOrEqual(0),
  });
  const { requests, arrivals } = load;
  if (arrivals.kind === 'open') {
    sent = requests.length;
    requests.forEach((request, nth) => twin.submit(request, arrivals.atSeconds[nth]));
  } else {
    sent = Math.min(arrivals.inFlight, requests.length);
    for (const request of requests.slice(0, sent)) twin.submit(request);
  }
  advance(twin);
  const endings = events.filter((event) => event.kind === 'ended');
  const retracted = events.flatMap((event) => (event.kind === 'retracted' ? event.ids : []));
  return { twin, events, endings, retracted };
}

describe('the jumps of the twin', () => {
  test('give what a walk step by step gives', () => {
    const met = { retracted: 0, recomputed: 0, cached: 0, fromHost: 0, refused: 0, partial: 0 };
    fc.assert(
      fc.property(twinCases, (given) => {
        const slow = playStepByStep(given.server, given.load);
        const { twin, events, endings, retracted } = play(given);
        const { sums } = twin;
        met.retracted += retracted.length;
        met.recomputed += sums.recomputedTokens;
        met.cached += sums.cachedTokens;
        met.fromHost += sums.hostCachedTokens;
        met.refused += endings.filter(({ ending }) => ending === 'refused').length;
        met.partial += events.filter((event) => event.kind === 'prefill' && event.newSequences === 0).length;
        expect(endings.map(({ id, ending, produced, cachedTokens }) => ({ id, ending, produced, cachedTokens }))).toEqual(
          slow.endings.map(({ id, ending, produced, cachedTokens }) => ({ id, ending, produced, cachedTokens })),
        );
        expect(retracted).toEqual(slow.retracted);
        endings.forEach(({ at }, nth) => expect(at).toBeCloseTo(slow.endings[nth]?.at ?? -1, 8));
        expect(sums.generatedTokens).toBe(slow.generatedTokens);
        expect(sums.prefilledTokens).toBe(slow.prefilledTokens);
        expect(sums.decodeSteps).toBe(slow.decodeSteps);
        for (const key of ['seconds', 'runningSeconds', 'queuedSeconds', 'contextSeconds'] as const)
          expect(Math.abs(sums[key] - slow[key])).toBeLessThan(1e-8 * (1 + slow[key]));
      }),
      { numRuns: 600 },
    );
    for (const [what, count] of Object.entries(met)) expect(count, `no case with ${what}`).toBeGreaterThan(0);
  });
});
