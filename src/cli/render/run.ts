/** The answer of `aerie run`: the table, the folder, the next command. Pure. */
import type { RunReport } from '../../app/run.ts';
import { formatCount, formatDuration } from '../../base/units.ts';
import { countOf } from './count-of.ts';
import { renderPartitions } from './partitions.ts';
import { renderReasons } from './reasons.ts';

export function renderRun(report: RunReport): string {
  const { session, folder } = report;
  const made = `${countOf(session.records, 'record')}, ${countOf(session.tokens, 'token')} in ${formatDuration(session.elapsedMs)}, up to ${session.mostInFlight} in flight`;
  return [
    renderPartitions(report.partitions),
    '',
    ...renderReasons(report.partitions, report.folder),
    // Nothing in flight: nobody was asked. Else all that was asked was set aside or dropped, and the lines above say why.
    `made    ${session.mostInFlight === 0 ? 'nothing: nothing was left to do' : made}`,
    ...report.leftOut.map(({ server, because }) => `left    ${server}: left out, ${because}`),
    ...renderLeft(report),
    `folder  ${folder}`,
    `next    ${nextAfter(report)}`,
  ].join('\n');
}

/** A run without a record has nothing to check: its rows, or its server, are to be mended first. */
function nextAfter({ partitions, folder }: RunReport): string {
  if (partitions.some(({ done }) => done > 0)) return `aerie check ${folder}`;
  return 'mend what is named above (from: and columns: in the run file, or the server), then the same command again';
}

/** What a finished run has left out on purpose, and what to do about it. */
function renderLeft({ partitions, folder }: RunReport): string[] {
  const lines: string[] = [];
  for (const { name, enrolled, rejected, waiting, leased, spentTokens, budget, aside, dropped } of partitions) {
    if (enrolled === 0 && rejected > 0)
      lines.push(
        `left    ${name}: no prompt at all, ${countOf(rejected, 'row')} refused; the first are in rejected/${name}.ndjson`,
      );
    const notAsked = waiting + leased;
    if (notAsked > 0)
      lines.push(
        `left    ${name}: ${countOf(notAsked, 'prompt')} not asked, ${formatCount(spentTokens)} tokens are spent of a budget of ${formatCount(budget)}; raise budget: and run again`,
      );
    if (aside > 0) lines.push(`left    ${name}: ${countOf(aside, 'prompt')} set aside; aerie status ${folder} says why`);
    if (dropped > 0)
      lines.push(`left    ${name}: ${countOf(dropped, 'prompt')} dropped, answers cut at max-tokens (truncated: drop)`);
  }
  return lines;
}
