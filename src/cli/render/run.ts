/** The answer of `aerie run`: the table, the folder, the next command. Pure. */
import type { RunReport } from '../../app/run.ts';
import { formatCount, formatDuration } from '../../base/units.ts';
import { renderPartitions } from './partitions.ts';

export function renderRun(report: RunReport): string {
  const { session, folder } = report;
  const made = `${formatCount(session.records)} records, ${formatCount(session.tokens)} tokens in ${formatDuration(session.elapsedMs)}, up to ${session.mostInFlight} in flight`;
  return [
    renderPartitions(report.partitions),
    '',
    session.records === 0 ? 'nothing was left to do' : made,
    `folder  ${folder}`,
    `next    aerie check ${folder}`,
  ].join('\n');
}
