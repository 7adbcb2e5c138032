/** Small random servers and loads for the twin: tight pools, all rules, shared beginnings. Every figure is drawn, so that shrinking works. */
import fc from 'fast-check';
import type { TwinLoad, TwinRequest } from '../../src/twin/load.ts';
import { newTokenRatioOf, type TwinServer } from '../../src/twin/server.ts';
import type { StepTime } from '../../src/twin/step-time.ts';

const stepTime: fc.Arbitrary<StepTime> = fc.record({
  fixedSeconds: fc.constantFrom(0.0101, 0.02),
  denseSeconds: fc.constantFrom(0, 0.003),
  expertSeconds: fc.constantFrom(0, 0.046),
  expertShare: fc.constantFrom(8 / 384, 0.5),
  perRequestSeconds: fc.constantFrom(0.00028, 0.001),
  perContextTokenSeconds: fc.constantFrom(0, 4.5e-5),
  eagerSeconds: fc.constantFrom(0, 0.03),
  prefill: fc.record({
    perTokenSeconds: fc.constantFrom(1 / 8100, 0.001),
    perTokenPairSeconds: fc.constantFrom(0, 1.3e-6),
    leastSeconds: fc.constantFrom(0, 0.015),
  }),
});

const sglang = fc
  .record({
    policy: fc.constantFrom('fcfs' as const, 'lpm' as const),
    chunk: fc.integer({ min: 1, max: 12 }),
    input: fc.integer({ min: 1, max: 400 }),
    mixedChunk: fc.boolean(),
    conservativeness: fc.constantFrom(0.01, 0.05, 0.3, 1),
    page: fc.constantFrom(1, 1, 4, 16),
  })
  .map(({ policy, chunk, input, mixedChunk, conservativeness, page }) => ({
    page,
    rules: {
      ...{ engine: 'sglang' as const, policy, mixedChunk, maxPrefillTokens: input },
      chunkedPrefillTokens: chunk === 12 ? Number.POSITIVE_INFINITY : Math.max(page, chunk * 9),
      newTokenRatio: { ...newTokenRatioOf(conservativeness), decayPerStep: 0.004 },
    },
  }));

const vllm = fc
  .record({ budget: fc.integer({ min: 12, max: 200 }), page: fc.constantFrom(1, 4, 16) })
  .map(({ budget, page }) => ({ page, rules: { engine: 'vllm' as const, policy: 'fcfs' as const, maxBatchedTokens: budget } }));

const server: fc.Arbitrary<TwinServer> = fc
  .record({
    engine: fc.oneof(sglang, vllm),
    poolTokens: fc.oneof(fc.integer({ min: 200, max: 500 }), fc.integer({ min: 64, max: 1500 })),
    maxRunningRequests: fc.constantFrom(1, 4, 12, 12),
    prefixCache: fc.boolean(),
    hostTokens: fc.constantFrom(0, 60, 2000),
    graphBatchSizes: fc.constantFrom([], [1, 2, 4], [1, 2, 4, 8, 12, 16]),
    stepTime,
  })
  .map(({ engine, hostTokens, prefixCache, ...rest }) => ({
    ...{ ...rest, prefixCache, rules: engine.rules, pageTokens: engine.page },
    hostTier:
      hostTokens > 0 && prefixCache && engine.rules.engine === 'sglang'
        ? { tokens: hostTokens, loadBackSecondsPerToken: 0.0005 }
        : undefined,
  }));

const request = fc.record({
  own: fc.integer({ min: 1, max: 60 }),
  output: fc.integer({ min: 1, max: 150 }),
  spare: fc.constantFrom(0, 30, 500),
  shared: fc.array(fc.record({ key: fc.constantFrom('a', 'b'), tokens: fc.constantFrom(7, 40) }), { maxLength: 2 }),
});

/** A segment's length belongs to its key: equal keys at equal places are equal tokens. */
const requests: fc.Arbitrary<TwinRequest[]> = fc.array(request, { minLength: 1, maxLength: 40, size: 'max' }).map((all) =>
  all.map(({ own, output, spare, shared }, at) => {
    const segments = shared.map(({ key, tokens }) => ({ key: `${key}${tokens}`, tokens }));
    const promptTokens = own + segments.reduce((sum, { tokens }) => sum + tokens, 0);
    return { id: String(at), promptTokens, outputTokens: output, maxNewTokens: output + spare, shared: segments };
  }),
);

export interface TwinCase {
  readonly server: TwinServer;
  readonly load: TwinLoad;
}

/** Both kinds of arrival; open ones at times between steps, so that no tie decides. */
export const twinCases: fc.Arbitrary<TwinCase> = fc
  .record({
    server,
    requests,
    inFlight: fc.integer({ min: 1, max: 25 }),
    gaps: fc.option(fc.array(fc.double({ min: 0.0001, max: 2, noNaN: true }), { minLength: 40, maxLength: 40 })),
  })
  .map(({ server: played, requests: all, inFlight, gaps }) => {
    let at = 0;
    const atSeconds = gaps?.map((gap) => (at += gap)) ?? [];
    const open = { kind: 'open' as const, atSeconds, inFlight: Number.POSITIVE_INFINITY };
    return { server: played, load: { requests: all, arrivals: gaps === null ? { kind: 'closed' as const, inFlight } : open } };
  });
