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
  const decoded = report.decoded
    ? `ids decode to their text in ${formatCount(report.drift.rows - report.drift.differing)} of ${formatCount(report.drift.rows)} answers`
    : 'ids were not compared with texts: the run folder has no tokenizer';
  const errors = report.findings.filter(({ severity }) => severity === 'error').length;
  const warnings = report.findings.length - errors;
  lines.push(
    '',
    decoded,
    `${countOf(errors, 'kind')} of error, ${warnings} of warning${report.hasErrors ? '' : ': a trainer can read this run'}`,
  );
  if (!report.hasErrors) lines.push(`next     aerie export ${report.folder} --for specforge      (or speculators)`);
  return lines.join('\n');
}
