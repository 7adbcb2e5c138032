/** The figures of a log that capacity can use, under the names of its facts. Pure. */
import type { LogFacts } from './log-facts.ts';

export function plainFactsOf(log: LogFacts): Record<string, number> {
  const { weightsGiBPerGpu, freeBeforeLoadGiB, freeAfterLoadGiB, poolGiB, graphsGiB, freeAfterGraphsGiB, poolTokens } = log;
  const all = { weightsGiBPerGpu, freeBeforeLoadGiB, freeAfterLoadGiB, poolGiB, graphsGiB, freeAfterGraphsGiB, poolTokens };
  return Object.fromEntries(Object.entries(all).filter((entry): entry is [string, number] => entry[1] !== undefined));
}
