/** The table per partition that ends a run and heads a status. Pure. */
import type { RunReport } from '../../app/run.ts';
import { formatCount, formatTokens } from '../../base/units.ts';
import { renderTable } from './table.ts';

type Partitions = RunReport['partitions'];

export function renderPartitions(partitions: Partitions): string {
  const head = [
    'partition',
    'records',
    'prompts',
    'turns',
    'truncated',
    'set aside',
    'refused',
    'duplicates',
    'tokens',
    'budget',
  ];
  const rows = partitions.map((partition) => [
    partition.name,
    formatCount(partition.done),
    `${formatCount(partition.enrolled)}${partition.enrolment === 'open' ? '+' : ''}`,
    formatCount(partition.answers),
    formatCount(partition.truncated),
    formatCount(partition.aside),
    formatCount(partition.rejected),
    formatCount(partition.duplicates),
    formatCount(partition.spentTokens),
    partition.budget === 0 ? 'none' : formatTokens(partition.budget),
  ]);
  return renderTable(head, rows);
}
