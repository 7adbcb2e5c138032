/** The answer of `aerie check`: each finding with its count, examples and what to type. Pure. */
import type { CheckReport } from '../../app/check.ts';
import { formatCount } from '../../base/units.ts';
import { countOf } from './count-of.ts';

/** Enough to look one up; `--json` has up to ten. */
const EXAMPLES_SHOWN = 3;

export function renderCheck(report: CheckReport): string {
  const lines = [`${countOf(report.records, 'record')} of run ${report.run}`];
  if (report.records === 0) return [...lines, 'There is nothing to check yet.', `next     aerie run ${report.folder}`].join('\n');
  for (const { severity, code, sentence, count, share, exampleIds, next } of report.findings) {
    lines.push(
      '',
      `${severity.padEnd(7)}  ${code}: ${countOf(count, 'record')} (${(100 * share).toFixed(1)} %)`,
      `         ${sentence}`,
    );
    lines.push(`         e.g. ${exampleIds.slice(0, EXAMPLES_SHOWN).join(', ')}`, `next     ${next}`);
  }
  const errors = report.findings.filter(({ severity }) => severity === 'error').length;
  const warnings = report.findings.length - errors;
  lines.push(
    '',
    ...renderCompared(report),
    `${countOf(errors, 'kind')} of error, ${warnings} of warning${report.hasErrors ? '' : ': a trainer can read this run'}`,
  );
  if (!report.hasErrors)
    lines.push(`next     aerie export ${report.folder} --for specforge      (or another trainer: aerie export --help)`);
  return lines.join('\n');
}

/** What was compared, and what could not be. */
function renderCompared({ tokenizer, decoded, drift, benchmarks }: CheckReport): string[] {
  const lines: string[] = [];
  if (tokenizer === 'none') lines.push('ids were not compared with texts: the run folder has no tokenizer');
  else lines.push(`ids decode to their text in ${same(decoded)} answers`);
  if (tokenizer === 'whole') lines.push(`rendered and tokenised anew, the same ids come out in ${same(drift)} token rows`);
  if (tokenizer === 'without-template')
    lines.push('conversations were not rendered anew: the run folder has no chat template that can be read');
  if (benchmarks !== undefined) {
    const unread = benchmarks.unread === 0 ? '' : `; ${countOf(benchmarks.unread, 'row')} of the list held no prompt`;
    lines.push(`compared with ${countOf(benchmarks.prompts, 'benchmark prompt')}${unread}`);
  }
  return lines;
}

function same({ rows, differing }: CheckReport['drift']): string {
  return `${formatCount(rows - differing)} of ${formatCount(rows)}`;
}

/** The document of `--json`: these keys and no others. */
export function checkData({ records, findings, drift }: CheckReport): unknown {
  return {
    records,
    findings: findings.map(({ code, severity, count, share, exampleIds, next }) => ({
      code,
      severity,
      count,
      share,
      exampleIds,
      next,
    })),
    drift,
  };
}
