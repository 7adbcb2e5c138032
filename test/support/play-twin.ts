/** A twin driven by hand, and a server on which times can be counted by hand. */
import { expect } from 'vitest';
import type { TwinRequest } from '../../src/twin/load.ts';
import { SGLANG_RULES, type TwinServer } from '../../src/twin/server.ts';
import { Twin } from '../../src/twin/twin.ts';
import type { TwinEvent } from '../../src/twin/twin-event.ts';
import type { TwinCase } from './twin-cases.ts';

/** A load driven by hand: what `playLoad` does, with everything that was told. */
export function playTwin({ server, load }: TwinCase, advance: (twin: Twin) => void = (twin) => twin.advance()) {
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

/** Steps of a hundredth of a second, prompts for nothing: times can be counted by hand. */
export const EVEN: TwinServer = {
  ...{ poolTokens: 200, maxRunningRequests: 8, pageTokens: 1, prefixCache: true, hostTier: undefined, graphBatchSizes: [] },
  rules: SGLANG_RULES,
  stepTime: {
    ...{ fixedSeconds: 0.01, denseSeconds: 0, expertSeconds: 0, expertShare: 0, perRequestSeconds: 0, perContextTokenSeconds: 0 },
    ...{ eagerSeconds: 0, prefill: { perTokenSeconds: 0, perTokenPairSeconds: 0, leastSeconds: 0 } },
  },
};

export const request = (
  id: string,
  promptTokens: number,
  outputTokens: number,
  over: Partial<TwinRequest> = {},
): TwinRequest => ({
  ...{ id, promptTokens, outputTokens, maxNewTokens: outputTokens, shared: [] },
  ...over,
});

export const closedLoop = (server: TwinServer, requests: readonly TwinRequest[], inFlight = 25): TwinCase => ({
  ...{ server, load: { requests, arrivals: { kind: 'closed', inFlight } } },
});
