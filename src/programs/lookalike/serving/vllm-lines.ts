/** vLLM's line of each ten seconds, 0.10 to 0.21. Pure. */
import { isAtLeast } from '../../../engine/version.ts';

export interface StatsReading {
  readonly promptPerSecond: number;
  readonly generatedPerSecond: number;
  readonly running: number;
  readonly waiting: number;
  readonly preemptions: number;
  /** Shares, 0 to 1. */
  readonly usage: number;
  readonly hitRate: number;
}

export function statsLine(reading: StatsReading, version: string): string {
  const percent = (share: number) => `${(100 * share).toFixed(1)}%`;
  const fields = [
    `Avg prompt throughput: ${reading.promptPerSecond.toFixed(1)} tokens/s`,
    `Avg generation throughput: ${reading.generatedPerSecond.toFixed(1)} tokens/s`,
    `Running: ${reading.running} reqs`,
    `Waiting: ${reading.waiting} reqs`,
    ...((isAtLeast(version, [0, 16, 0]) ?? true) && reading.preemptions > 0 ? [`Preemptions: ${reading.preemptions}`] : []),
    `GPU KV cache usage: ${percent(reading.usage)}`,
    `Prefix cache hit rate: ${percent(reading.hitRate)}`,
  ];
  return `Engine 000: ${fields.join(', ')}`;
}
