/** Medians and ranges for the tables of docs/benchmarks.md, and what machine they are of. */
import { cpus, loadavg } from 'node:os';

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** `median (least–most)` */
export function withRange(values, digits = 0) {
  const show = (value) => value.toFixed(digits);
  return `${show(median(values))} (${show(Math.min(...values))}–${show(Math.max(...values))})`;
}

export function machine(loads) {
  const model = (cpus()[0]?.model ?? 'unknown CPU')
    .replace(/\(R\)|\(TM\)|Processor/g, '')
    .replace(/\s+/g, ' ')
    .trim();
  const least = Math.min(...loads).toFixed(1);
  const most = Math.max(...loads).toFixed(1);
  return `${model}, ${cpus().length} cores, Node ${process.versions.node}, load average ${least} to ${most} before the runs (1 minute)`;
}

export const load = () => loadavg()[0];
