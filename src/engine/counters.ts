/**
 * What an engine says it does, from its metrics. Pure.
 * Promises: a name that the engine's version does not have is undefined, never 0; of the ranks that keep the same figure one counts, and
 * the groups that keep figures of their own are added up.
 */
import { readSamples, type Sample } from './prometheus.ts';

/** Counters are what moves, gauges are what waits. */
export interface EngineCounters {
  readonly generatedTokens: number | undefined;
  readonly promptTokens: number | undefined;
  readonly running: number | undefined;
  readonly waiting: number | undefined;
}

/** Labels that tell engines apart which work on requests of their own: SGLang's data-parallel groups, vLLM's engines. */
const GROUPS = ['dp_rank', 'engine', 'engine_index', 'model_name'] as const;

/**
 * The figure over the whole server; undefined where the text does not have it. Tensor and pipeline ranks of one group report the
 * same work (SGLang, with `--enable-metrics-for-all-schedulers`), so the largest of them counts.
 */
export function readFigure(
  metrics: string,
  names: readonly string[],
  labels: Readonly<Record<string, string>> = {},
): number | undefined {
  for (const name of names) {
    const found = readSamples(metrics, name).filter((sample) => Number.isFinite(sample.value) && hasLabels(sample, labels));
    if (found.length > 0) return sumOverGroups(found);
  }
  return undefined;
}

function hasLabels(sample: Sample, labels: Readonly<Record<string, string>>): boolean {
  return Object.entries(labels).every(([name, value]) => sample.labels[name] === value);
}

function sumOverGroups(samples: readonly Sample[]): number {
  // Within a group: ranks repeat each other, and what differs in another label (priority, adapter, worker process) adds up.
  const byRank = new Map<string, Map<string, number>>();
  for (const { labels, value } of samples) {
    const group = JSON.stringify(GROUPS.map((name) => labels[name] ?? ''));
    const rank = JSON.stringify(RANKS.map((name) => labels[name] ?? ''));
    const ranks = byRank.get(group) ?? new Map<string, number>();
    ranks.set(rank, (ranks.get(rank) ?? 0) + value);
    byRank.set(group, ranks);
  }
  return [...byRank.values()].reduce((sum, ranks) => sum + Math.max(...ranks.values()), 0);
}

const RANKS = ['tp_rank', 'pp_rank', 'moe_ep_rank'] as const;

/** Undefined where not one of the figures is there: it is some other program's page, or metrics are off. */
export function unlessEmpty(counters: EngineCounters): EngineCounters | undefined {
  return Object.values(counters).some((figure) => figure !== undefined) ? counters : undefined;
}
