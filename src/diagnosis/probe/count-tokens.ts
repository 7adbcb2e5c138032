/** What was counted between the two readings of a probe. Pure. */
import type { EngineCounters } from '../../engine/counters.ts';
import type { ProbeEvidence, Reading } from './evidence.ts';

export interface Counted {
  readonly generated: number | undefined;
  readonly prompted: number | undefined;
  /** Something was counted, and it was this probe's own. */
  readonly isOwn: boolean;
}

/** Between two readings, without what the probe's own health checks make: a prompt and an answer of a token each. */
export function countTokens({ ownChecks }: Pick<ProbeEvidence, 'ownChecks'>, first: Reading, last: Reading): Counted {
  const between = (read: (counters: EngineCounters) => number | undefined) => {
    const [before, after] = [first.counters && read(first.counters), last.counters && read(last.counters)];
    return first === last || before === undefined || after === undefined || after < before ? undefined : after - before;
  };
  const [generated, prompted] = [between((one) => one.generatedTokens), between((one) => one.promptTokens)];
  const all = (generated ?? 0) + (prompted ?? 0);
  const isOwn = all > 0 && (generated ?? 0) <= ownChecks && (prompted ?? 0) <= ownChecks;
  const without = (count: number | undefined) => (count === undefined || !isOwn ? count : 0);
  return { generated: without(generated), prompted: without(prompted), isOwn };
}
