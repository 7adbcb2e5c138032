/** The answer of `aerie status`. Pure. */
import type { StatusReport } from '../../app/status.ts';
import type { Worker } from '../../app/worker-of.ts';
import { formatCount } from '../../base/units.ts';
import { renderHistory } from './launch-history.ts';
import { renderPartitions } from './partitions.ts';
import { renderReasons } from './reasons.ts';

export function renderStatus(report: StatusReport): string {
  const lines = [renderPartitions(report.partitions), '', ...renderReasons(report.partitions, report.folder)];
  for (const { partition, id, reason, because } of report.setAsides) lines.push(`  ${partition}/${id}  ${reason}: ${because}`);
  const aside = report.partitions.reduce((sum, partition) => sum + partition.aside, 0);
  if (aside > report.setAsides.length) lines.push(`  … and ${formatCount(aside - report.setAsides.length)} more`);
  const hasRecords = report.partitions.some(({ done }) => done > 0);
  const outcomes = Object.entries(report.outcomes).map(([outcome, count]) => `${formatCount(count)} ${outcome}`);
  if (outcomes.length > 0) lines.push(`attempts   ${outcomes.join(', ')}`);
  for (const { rule, because, by, addedAt } of report.rules) {
    const since = addedAt === 0 ? '' : `, added ${new Date(addedAt).toISOString().slice(0, 16).replace('T', ' ')} UTC`;
    lines.push(`policy     ${rule}: ${because} (decided by ${by}${since})`);
  }
  lines.push(...renderHistory(report.history, report.living));
  if (report.worker !== undefined) lines.push(renderWorker(report.worker));
  lines.push(`folder     ${report.folder}`, `next       ${nextOf(report, hasRecords)}`);
  return lines.join('\n');
}

function renderWorker({ pid, host, startedAt, isDetached, log, isDraining, presence }: Worker): string {
  const since = `${new Date(startedAt).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
  const where = isDetached ? `detached, its words in ${log}` : 'in a terminal or a program that started it';
  const state = isDraining ? '; it finishes what is in flight and ends' : '';
  const seen = presence === 'running' ? '' : `; on ${host}, where it cannot be seen from here`;
  return `worker     pid ${pid} since ${since}, ${where}${state}${seen}`;
}

function nextOf({ worker, isFinished, folder }: StatusReport, hasRecords: boolean): string {
  if (worker !== undefined) return `aerie status ${folder} --follow, or aerie stop ${folder}`;
  return `aerie ${isFinished && hasRecords ? 'check' : 'run'} ${folder}`;
}
