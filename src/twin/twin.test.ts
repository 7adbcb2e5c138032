import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import { playStepByStep } from '../../test/support/step-by-step/play-step-by-step.ts';
import { twinCases, type TwinCase } from '../../test/support/twin-cases.ts';
import type { TwinRequest } from './load.ts';
import { newTokenRatioOf, SGLANG_RULES, type TwinServer } from './server.ts';
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
    for (const [nth, request] of requests.entries()) twin.submit(request, arrivals.atSeconds[nth]);
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

/** Steps of a hundredth of a second, prompts for nothing: times can be counted by hand. */
const EVEN: TwinServer = {
  ...{ poolTokens: 200, maxRunningRequests: 8, pageTokens: 1, prefixCache: true, hostTier: undefined, graphBatchSizes: [] },
  rules: SGLANG_RULES,
  stepTime: {
    ...{ fixedSeconds: 0.01, denseSeconds: 0, expertSeconds: 0, expertShare: 0, perRequestSeconds: 0, perContextTokenSeconds: 0 },
    ...{ eagerSeconds: 0, prefill: { perTokenSeconds: 0, perTokenPairSeconds: 0, leastSeconds: 0 } },
  },
};

const request = (id: string, promptTokens: number, outputTokens: number, over: Partial<TwinRequest> = {}): TwinRequest => ({
  ...{ id, promptTokens, outputTokens, maxNewTokens: outputTokens, shared: [] },
  ...over,
});

const closedLoop = (server: TwinServer, requests: readonly TwinRequest[], inFlight = 25): TwinCase => ({
  ...{ server, load: { requests, arrivals: { kind: 'closed', inFlight } } },
});

describe('the twin', () => {
  test('ends every request once, with all of its tokens, and leaves an empty pool', () => {
    fc.assert(
      fc.property(twinCases, (given) => {
        const { twin, endings } = play(given);
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
          const [once, often] = [play(given), play(given, walk)];
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
          const { twin, endings } = play(given, (playing) => {
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
    const { endings } = play(closedLoop(EVEN, [request('0', 5, 50)]), (twin) => {
      twin.abort('0', 0.093);
      twin.advance();
    });
    expect(endings[0]).toMatchObject({ ending: 'aborted', produced: 11 });
    expect(endings[0]?.at).toBeCloseTo(0.1, 9);
  });

  test('reserves for what may come, so that nobody is retracted at a ratio of 1', () => {
    const rules = { ...SGLANG_RULES, newTokenRatio: { initial: 1, floor: 1, decayPerStep: 0 } };
    const requests = Array.from({ length: 12 }, (_, nth) => request(String(nth), 10, 40));
    const { twin, retracted } = play(closedLoop({ ...EVEN, rules }, requests));
    expect(retracted).toEqual([]);
    expect(twin.sums.runningSeconds / twin.sums.seconds).toBeLessThanOrEqual(200 / 50);
  });

  test('grows bolder with every step, until a full pool retracts and sets the ratio anew', () => {
    const rules = { ...SGLANG_RULES, newTokenRatio: { ...newTokenRatioOf(0.3), decayPerStep: 0.005 } };
    const requests = Array.from({ length: 30 }, (_, nth) =>
      request(String(nth), 4, 20 + ((nth * 17) % 41), { maxNewTokens: 60 }),
    );
    const { events, retracted, twin } = play(closedLoop({ ...EVEN, rules }, requests));
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
    const cachedBy = (server: TwinServer, inFlight = 3) => play(closedLoop(server, requests, inFlight)).twin.sums.cachedTokens;
    expect(cachedBy(roomy)).toBe(0); // first come, first served: both compute it in one batch
    expect(cachedBy({ ...roomy, rules: { ...roomy.rules, policy: 'lpm' } })).toBe(40);
    expect(cachedBy(roomy, 1)).toBe(40);
    expect(cachedBy({ ...roomy, prefixCache: false }, 1)).toBe(0);
  });

  test('a host tier brings prefixes back and gives running requests no room', () => {
    const turn = (id: string, key: string) => request(id, 80, 40, { shared: [{ key, tokens: 70 }] });
    const requests = ['a', 'b', 'a', 'b', 'a', 'b'].map((key, nth) => turn(String(nth), key));
    const [without, within] = [undefined, { tokens: 4000, loadBackSecondsPerToken: 0 }].map((hostTier) =>
      play(closedLoop({ ...EVEN, poolTokens: 130, hostTier }, requests, 2)),
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
    const { endings } = play(given);
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

describe('a larger pool', () => {
  const seconds = (given: TwinCase) => play(given).twin.sums.seconds;
  const longest = ({ load }: TwinCase) => Math.max(...load.requests.map((each) => each.promptTokens + each.maxNewTokens));
  /** Every request that may be there at once fits with all that it may ask for. */
  const enoughFor = (given: TwinCase) => {
    const atOnce = given.load.arrivals.kind === 'closed' ? given.load.arrivals.inFlight : given.load.requests.length;
    return (atOnce + 1) * (longest(given) + 2 * given.server.pageTokens) + 4096;
  };
  const withPool = ({ server, load }: TwinCase, poolTokens: number): TwinCase => ({ server: { ...server, poolTokens }, load });

  test('changes nothing once everybody fits', () => {
    fc.assert(
      fc.property(twinCases, fc.integer({ min: 1, max: 9 }), (drawn, factor) => {
        const given = { ...drawn, server: { ...drawn.server, prefixCache: false, hostTier: undefined } };
        const enough = enoughFor(given);
        expect(seconds(withPool(given, enough * factor))).toBe(seconds(withPool(given, enough)));
      }),
      { numRuns: runs(100) },
    );
  });

  test('that holds everybody is never later than one that refuses, where a step costs the same for all and nobody was retracted', () => {
    let compared = 0;
    fc.assert(
      fc.property(twinCases, (drawn) => {
        // In an open load an arrival may meet a later edge between two steps: the law holds up to one step there.
        if (drawn.server.rules.engine !== 'sglang' || drawn.load.arrivals.kind === 'open') return;
        const rules = { ...drawn.server.rules, mixedChunk: false };
        const given = { ...drawn, server: { ...EVEN, poolTokens: drawn.server.poolTokens, prefixCache: false, rules } };
        const small = withPool(given, Math.max(given.server.poolTokens, longest(given) + 8));
        const { twin, retracted } = play(small);
        if (retracted.length > 0) return;
        compared += 1;
        expect(seconds(withPool(given, enoughFor(given)))).toBeLessThanOrEqual(twin.sums.seconds + 1e-9);
      }),
      { numRuns: runs(800) },
    );
    expect(compared).toBeGreaterThan(30);
  });

  test('is later where its larger batch has no captured graph', () => {
    const requests = Array.from({ length: 8 }, (_, nth) => request(String(nth), 10, 40));
    const stepTime = { ...EVEN.stepTime, eagerSeconds: 0.03 };
    const given = closedLoop({ ...EVEN, prefixCache: false, graphBatchSizes: [1, 2, 4], stepTime }, requests);
    expect(seconds(withPool(given, 210))).toBeCloseTo(2 * 39 * 0.01, 9);
    expect(seconds(withPool(given, 1000))).toBeCloseTo(39 * 0.04, 9);
  });
});
