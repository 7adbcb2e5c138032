/** Progress of a run as lines. Pure: the same numbers always give the same lines. */
import { type PartitionProgress, type Progress, RATE_WINDOW_MS } from '../../app/progress.ts';
import { formatCount, formatDuration, formatTokens } from '../../base/units.ts';

/** The whole live region, the line of totals included (house rule: at most eight). */
const MOST_LINES = 8;

export function renderProgressLines(progress: Progress, columns: number): string[] {
  const shown = progress.partitions.slice(0, MOST_LINES - 2);
  const width = Math.max(...shown.map(({ name }) => name.length));
  const lines = shown.map((partition) => renderPartition(partition, width));
  const hidden = progress.partitions.length - shown.length;
  if (hidden > 0) lines.push(`… and ${hidden} more partitions`);
  return [...lines, renderTotals(progress)].map((line) => (line.length >= columns ? `${line.slice(0, columns - 2)}…` : line));
}

/** One summary line with the same facts, for pipes and CI. */
export function renderProgressLine(progress: Progress): string {
  const done = progress.partitions.reduce((sum, partition) => sum + partition.done, 0);
  const enrolled = progress.partitions.reduce((sum, partition) => sum + partition.enrolled, 0);
  const tokens = progress.partitions.reduce((sum, partition) => sum + partition.spentTokens, 0);
  const open = progress.partitions.some(({ enrolmentOpen }) => enrolmentOpen) ? '+' : '';
  return `${formatCount(done)} of ${formatCount(enrolled)}${open} done · ${formatTokens(tokens)} tokens · ${renderTotals(progress)}`;
}

function renderPartition(partition: PartitionProgress, width: number): string {
  const { name, done, aside, dropped, enrolled, enrolmentOpen, spentTokens, budget, truncated, answers } = partition;
  const share = enrolled === 0 ? 0 : (done + aside + dropped) / enrolled;
  const parts = [
    `${name.padEnd(width)} ${bar(share)} ${formatCount(done)} of ${formatCount(enrolled)}${enrolmentOpen ? '+' : ''}`,
    budget > 0 ? `${formatTokens(spentTokens)} of ${formatTokens(budget)} tokens` : `${formatTokens(spentTokens)} tokens`,
  ];
  if (truncated > 0) parts.push(`${Math.round((100 * truncated) / Math.max(1, answers))} % truncated`);
  if (aside > 0) parts.push(`${formatCount(aside)} set aside`);
  if (dropped > 0) parts.push(`${formatCount(dropped)} dropped`);
  return parts.join(' · ');
}

function renderTotals({ tokensPerS, inFlight, gate, elapsedMs, remainingMs, draining }: Progress): string {
  const left =
    remainingMs === undefined
      ? 'time left after the first answers'
      : remainingMs.high < 1000
        ? 'almost done'
        : `${formatDuration(remainingMs.low)} to ${formatDuration(remainingMs.high)} left`;
  const rate =
    tokensPerS > 0
      ? `${formatTokens(tokensPerS)} tok/s over ${formatDuration(Math.min(elapsedMs, RATE_WINDOW_MS))}`
      : 'no rate yet';
  return `${draining ? 'draining · ' : ''}${rate} · ${inFlight} of ${gate} in flight · ${formatDuration(elapsedMs)} · ${left}`;
}

function bar(share: number): string {
  const cells = 16;
  const full = Math.round(Math.min(1, share) * cells);
  return `[${'#'.repeat(full)}${'.'.repeat(cells - full)}]`;
}
