/** The answer of `aerie status`. Pure. */
import type { StatusReport } from '../../app/status.ts';
import { formatCount } from '../../base/units.ts';
import { renderPartitions } from './partitions.ts';

export function renderStatus(report: StatusReport): string {
  const lines = [renderPartitions(report.partitions), ''];
  for (const { name, rejectedBecause } of report.partitions) {
    for (const [reason, count] of Object.entries(rejectedBecause))
      lines.push(`refused    ${name}  ${formatCount(count)} × ${reason}   (rejected/${name}.ndjson has line and reason)`);
  }
  for (const { partition, id, because } of report.setAsides) lines.push(`set aside  ${partition}/${id}  ${because}`);
  const outcomes = Object.entries(report.outcomes).map(([outcome, count]) => `${formatCount(count)} ${outcome}`);
  if (outcomes.length > 0) lines.push(`attempts   ${outcomes.join(', ')}`);
  lines.push(`folder     ${report.folder}`, `next       aerie ${report.isFinished ? 'check' : 'run'} ${report.folder}`);
  return lines.join('\n');
}
