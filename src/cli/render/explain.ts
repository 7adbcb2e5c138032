/** The answer of `aerie explain`. Pure. */
import type { ExplainedCode, ExplainReport } from '../../app/explain.ts';
import { renderTable } from './table.ts';

const HEADS: readonly (readonly [ExplainedCode['kind'], string])[] = [
  ['error', 'Errors of a command (exit code):'],
  ['finding', 'Findings of aerie check:'],
  ['rejection', 'Reasons why an input row is refused:'],
];

export function renderExplain({ pages, isList }: ExplainReport): string {
  if (!isList) return pages.map(({ page }) => page.replaceAll('**', '')).join('\n\n');
  const parts = HEADS.map(([kind, head]) => {
    const rows = pages.filter((page) => page.kind === kind);
    const table =
      kind === 'error'
        ? renderTable(
            ['code', 'exit', 'title'],
            rows.map(({ code, exitCode, title }) => [code, String(exitCode), title]),
          )
        : renderTable(
            ['code', 'title'],
            rows.map(({ code, title }) => [code, title]),
          );
    return `${head}\n\n${table}`;
  });
  return `${parts.join('\n\n')}\n\nnext    aerie explain CODE`;
}
