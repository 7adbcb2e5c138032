/** The answer of `aerie export`. Pure. */
import { type ExportReport, renderCounts } from '../../app/export.ts';
import { formatCount } from '../../base/units.ts';
import { countOf } from './count-of.ts';
import { renderTable } from './table.ts';

export function renderExport(report: ExportReport): string {
  const head = ['partition', 'records', 'token rows', 'conversations', 'tokens', 'supervised', 'files'];
  const rows = report.partitions.map((partition) => [
    partition.partition,
    formatCount(partition.records),
    formatCount(partition.tokenRows),
    formatCount(partition.conversationRows),
    // Counted in token rows: a trainer that gets conversations alone has none.
    ...[partition.tokens, partition.supervisedTokens].map((tokens) =>
      partition.tokenRows === 0 && partition.conversationRows > 0 ? '-' : formatCount(tokens),
    ),
    formatCount(partition.files.length),
  ]);
  const lines = [renderTable(head, rows), ''];
  if (report.unfinished > 0)
    lines.push(`note      ${countOf(report.unfinished, 'prompt')} without a record yet; export again when the run is done`);
  if (report.partitions.every(({ records }) => records === 0))
    lines.push('note      no record at all: nothing to train on was written');
  for (const note of report.notes) lines.push(`note      ${note}`);
  const counts = renderCounts(report);
  if (counts !== undefined) lines.push(`counts    ${counts}`, `          ${report.counts?.folder ?? ''}`);
  lines.push(`folder    ${report.folder}`, `manifest  ${report.manifest}`);
  return lines.join('\n');
}
