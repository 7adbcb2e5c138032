/** The table per partition that ends a run and heads a status. Pure. */
import type { RunReport } from '../../app/run.ts';
import { formatCount, formatTokens } from '../../base/units.ts';
import { renderTable } from './table.ts';

type Partitions = RunReport['partitions'];

export function renderPartitions(partitions: Partitions): string {
  const isDropping = partitions.some(({ dropped }) => dropped > 0);
  const head = [
    'partition',
    'records',
    'prompts',
    'turns',
    'truncated',
    'set aside',
    ...(isDropping ? ['dropped'] : []),
    'refused',
    'duplicates',
    'tokens',
    'budget',
  ];
  const rows = partitions.map((partition) => [
    partition.name,
    formatCount(partition.done + partition.redoing),
    `${formatCount(partition.enrolled)}${partition.enrolment === 'open' ? '+' : ''}`,
    formatCount(partition.answers),
    formatCount(partition.truncated),
    formatCount(partition.aside),
    ...(isDropping ? [formatCount(partition.dropped)] : []),
    formatCount(partition.rejected),
    formatCount(partition.duplicates),
    formatCount(partition.spentTokens),
    partition.budget === 0 ? 'none' : formatTokens(partition.budget),
  ]);
  return renderTable(head, rows);
}
