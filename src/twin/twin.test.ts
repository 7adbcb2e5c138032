import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { closedLoop, EVEN, playTwin, request } from '../../test/support/play-twin.ts';
import { runs } from '../../test/support/property-runs.ts';
import { playStepByStep } from '../../test/support/step-by-step/play-step-by-step.ts';
import { twinCases } from '../../test/support/twin-cases.ts';
import type { TwinRequest } from './load.ts';
import { newTokenRatioOf, SGLANG_RULES, type TwinServer } from './server.ts';
import { Twin } from './twin.ts';
import type { TwinEvent } from './twin-event.ts';

describe('the jumps of the twin', () => {
  test('give what a walk step by step gives', () => {
    const met = { retracted: 0, recomputed: 0, cached: 0, fromHost: 0, refused: 0, partial: 0 };
    fc.assert(
      fc.property(twinCases, (given) => {
        const slow = playStepByStep(given.server, given.load);
        const { twin, events, endings, retracted } = playTwin(given);
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
        for (const [nth, { at }] of endings.entries()) expect(at).toBeCloseTo(slow.endings[nth]?.at ?? -1, 8);
        expect(sums.generatedTokens).toBe(slow.generatedTokens);
        expect(sums.prefilledTokens).toBe(slow.prefilledTokens);
        expect(sums.decodeSteps).toBe(slow.decodeSteps);
        for (const key of ['seconds', 'runningSeconds', 'queuedSeconds', 'contextSeconds'] as const)
          expect(Math.abs(sums[key] - slow[key])).toBeLessThan(1e-8 * (1 + slow[key]));
      }),
      { numRuns: runs(600) },
    );
    for (const [what, count] of Object.entries(met)) expect(count, `no case with ${what}`).toBeGreaterThan(0);
  });
});

describe('the twin', () => {
  test('ends every request once, with all of its tokens, and leaves an empty pool', () => {
    fc.assert(
      fc.property(twinCases, (given) => {
        const { twin, endings } = playTwin(given);
        expect(endings.map(({ id }) => id).sort()).toEqual(given.load.requests.map(({ id }) => id).sort());
        const limit = twin.longestRequestTokens;
        let generated = 0;
        for (const { id, ending, produced } of endings) {
          const { promptTokens, outputTokens } = given.load.requests[Number(id)] as TwinRequest;
          generated += produced;
          if (ending === 'finished') expect(produced).toBe(Math.min(outputTokens, limit - promptTokens));
          else if (ending === 'refused') expect(promptTokens).toBeGreaterThanOrEqual(limit);
        }
        const { sums } = twin;
        expect(sums.generatedTokens).toBe(generated);
        const computed = sums.prefilledTokens + sums.cachedTokens;
        if (given.server.rules.engine === 'sglang') expect(computed).toBe(sums.promptTokens);
        else expect(computed).toBeLessThanOrEqual(sums.promptTokens); // a half computed prompt may be preempted
        expect(twin.usedTokens).toBe(0);
        expect(twin.running + twin.queued).toBe(0);
      }),
      { numRuns: runs(300) },
    );
  });

  test('tells the same in one advance as in many, and names the time of the next change', () => {
    fc.assert(
      fc.property(
        twinCases,
        fc.array(fc.double({ min: 0, max: 3, noNaN: true }), { minLength: 5, maxLength: 30 }),
        (given, pauses) => {
          const walk = (twin: Twin) => {
            let at = 0;
            for (const pause of pauses) {
              at += pause;
              twin.advance(at);
              expect(twin.now).toBeLessThanOrEqual(at);
            }
            twin.advance();
          };
          const [once, often] = [playTwin(given), playTwin(given, walk)];
          // A jump is cut in two by a pause; everything else is the same event, but for the rounding of a sum in two parts.
          const told = (all: readonly TwinEvent[]) => all.filter(({ kind }) => kind !== 'decode');
          const [first, second] = [told(once.events), told(often.events)];
          expect(second).toHaveLength(first.length);
          second.forEach((event, nth) => {
            for (const [key, value] of Object.entries(first[nth] ?? {})) {
              const other = (event as unknown as Record<string, unknown>)[key];
              if (typeof value === 'number') expect(other).toBeCloseTo(value, 8);
              else expect(other).toEqual(value);
            }
          });
          expect(often.twin.sums.decodeSteps).toBe(once.twin.sums.decodeSteps);
        },
      ),
      { numRuns: runs(400) },
    );
  });

  test('ends aborted requests wherever they are, and goes on', () => {
    fc.assert(
      fc.property(
        twinCases,
        fc.array(fc.tuple(fc.nat(39), fc.double({ min: 0, max: 20, noNaN: true })), { minLength: 1, maxLength: 10 }),
        (given, aborts) => {
          const asked = aborts.filter(([id], nth) => aborts.findIndex(([other]) => other === id) === nth);
          const { twin, endings } = playTwin(given, (playing) => {
            for (const [id, at] of asked) playing.abort(String(id), at);
            playing.advance();
          });
          expect(endings.map(({ id }) => id).sort()).toEqual(given.load.requests.map(({ id }) => id).sort());
          for (const { id, ending } of endings)
            if (ending === 'aborted') expect(asked.map(([each]) => String(each))).toContain(id);
          expect(twin.usedTokens).toBe(0);
        },
      ),
      { numRuns: runs(300) },
    );
  });

  test('an abort takes effect at the end of the step that runs', () => {
    const { endings } = playTwin(closedLoop(EVEN, [request('0', 5, 50)]), (twin) => {
      twin.abort('0', 0.093);
      twin.advance();
    });
    expect(endings[0]).toMatchObject({ ending: 'aborted', produced: 11 });
    expect(endings[0]?.at).toBeCloseTo(0.1, 9);
  });

  test('a request that comes between two calls is not seen by the step that is under way', () => {
    const rules = { ...SGLANG_RULES, chunkedPrefillTokens: 1000 };
    const stepTime = { ...EVEN.stepTime, prefill: { perTokenSeconds: 0.001, perTokenPairSeconds: 0, leastSeconds: 0 } };
    const events: TwinEvent[] = [];
    const twin = new Twin({ ...EVEN, rules, stepTime, poolTokens: 2000 }, { onEvent: (event) => events.push(event) });
    twin.submit(request('0', 100, 2));
    twin.advance(0.03); // its prompt takes until 0.1
    expect([twin.now, twin.running, twin.nextChangeAt]).toEqual([0, 1, 0.1]);
    twin.submit(request('1', 100, 1), 0.01); // the past is over: it comes at 0.03
    twin.advance();
    const ended = events.filter((event) => event.kind === 'ended');
    expect(ended.map(({ id, arrivedAt }) => [id, arrivedAt])).toEqual([
      ['1', 0.03],
      ['0', 0],
    ]);
    expect(ended[0]?.at).toBeCloseTo(0.2, 9); // a prefill goes before a decode step
    expect(ended[1]?.at).toBeCloseTo(0.21, 9);
  });

  test('reserves for what may come, so that nobody is retracted at a ratio of 1', () => {
    const rules = { ...SGLANG_RULES, newTokenRatio: { initial: 1, floor: 1, decayPerStep: 0 } };
    const requests = Array.from({ length: 12 }, (_, nth) => request(String(nth), 10, 40));
    const { twin, retracted } = playTwin(closedLoop({ ...EVEN, rules }, requests));
    expect(retracted).toEqual([]);
    expect(twin.sums.runningSeconds / twin.sums.seconds).toBeLessThanOrEqual(200 / 50);
  });

  test('grows bolder with every step, until a full pool retracts and sets the ratio anew', () => {
    const rules = { ...SGLANG_RULES, newTokenRatio: { ...newTokenRatioOf(0.3), decayPerStep: 0.005 } };
    const requests = Array.from({ length: 30 }, (_, nth) =>
      request(String(nth), 4, 20 + ((nth * 17) % 41), { maxNewTokens: 60 }),
    );
    const { events, retracted, twin } = playTwin(closedLoop({ ...EVEN, rules }, requests));
    expect(retracted.length).toBeGreaterThan(0);
    const first = events.find((event) => event.kind === 'retracted');
    expect(first?.ratioBefore).toBeLessThan(0.21);
    expect(first?.ratioAfter).toBeGreaterThan(first?.ratioBefore ?? 1);
    expect(twin.sums.recomputedTokens).toBeGreaterThan(0);
  });

  test('finds a shared beginning in the cache; lpm lets one compute it first', () => {
    const shared = [{ key: 'system', tokens: 40 }];
    const requests = [request('0', 44, 5, { shared }), request('1', 44, 5, { shared }), request('2', 44, 5)];
    const roomy = { ...EVEN, poolTokens: 2000, rules: { ...SGLANG_RULES, chunkedPrefillTokens: 88 } }; // two prompts a step
    const cachedBy = (server: TwinServer, inFlight = 3) =>
      playTwin(closedLoop(server, requests, inFlight)).twin.sums.cachedTokens;
    expect(cachedBy(roomy)).toBe(0); // first come, first served: both compute it in one batch
    expect(cachedBy({ ...roomy, rules: { ...roomy.rules, policy: 'lpm' } })).toBe(40);
    expect(cachedBy(roomy, 1)).toBe(40);
    expect(cachedBy({ ...roomy, prefixCache: false }, 1)).toBe(0);
  });

  test('a host tier brings prefixes back and gives running requests no room', () => {
    const turn = (id: string, key: string) => request(id, 80, 40, { shared: [{ key, tokens: 70 }] });
    const requests = ['a', 'b', 'a', 'b', 'a', 'b'].map((key, nth) => turn(String(nth), key));
    const [without, within] = [undefined, { tokens: 4000, loadBackSecondsPerToken: 0 }].map((hostTier) =>
      playTwin(closedLoop({ ...EVEN, poolTokens: 130, hostTier }, requests, 2)),
    );
    expect(without?.twin.sums.cachedTokens).toBe(0);
    expect(within?.twin.sums.hostCachedTokens).toBeGreaterThan(0);
    expect(within?.twin.sums.seconds).toBeCloseTo(without?.twin.sums.seconds ?? 0, 9);
    expect(within?.twin.sums.runningSeconds).toBeCloseTo(without?.twin.sums.runningSeconds ?? 0, 9);
  });

  test('the last running request that cannot grow beside a half computed prompt ends with an error', () => {
    const rules = {
      ...SGLANG_RULES,
      mixedChunk: true,
      chunkedPrefillTokens: 3,
      newTokenRatio: { initial: 0, floor: 0, decayPerStep: 0 },
    };
    const requests = [request('0', 2, 80), request('1', 90, 1)];
    const arrivals = { kind: 'open' as const, atSeconds: [0, 0.035], inFlight: 2 };
    const given = { server: { ...EVEN, poolTokens: 100, rules }, load: { requests, arrivals } };
    const { endings } = playTwin(given);
    expect(endings.map(({ id, ending }) => [id, ending])).toContainEqual(['0', 'out-of-memory']);
    const walked = playStepByStep(given.server, given.load).endings;
    expect(walked.map(({ id, ending, produced }) => [id, ending, produced])).toEqual(
      endings.map(({ id, ending, produced }) => [id, ending, produced]),
    );
  });

  test('a server that cannot be is refused with all its problems', () => {
    expect(() => new Twin({ ...EVEN, poolTokens: 0, graphBatchSizes: [4, 2] })).toThrow(/poolTokens is 0[\s\S]*graphBatchSizes/);
  });
});
