/** The answer of `aerie policy add`. Pure. */
import type { PolicyAddReport } from '../../app/policy-add.ts';
import { countOf } from './count-of.ts';

export function renderPolicyAdd(report: PolicyAddReport): string {
  const { rule, because, by, launches, partitions, records, prompts, tokens } = report;
  const lines = [`policy     ${rule}: ${because} (decided by ${by})`];
  for (const broken of launches) lines.push(`broken by  launch ${broken.launch}, ${broken.server}: ${broken.because}`);
  for (const part of partitions) {
    const back = `${countOf(part.prompts, 'prompt')} to be asked again, ${countOf(part.tokens, 'token')} back in the budget`;
    lines.push(`${part.partition.padEnd(10)} ${countOf(part.records, 'record')} withdrawn, ${back}`);
  }
  if (launches.length === 0) lines.push('broken by  no launch so far; nothing was withdrawn');
  else if (partitions.length === 0) lines.push('withdrawn  nothing: these launches had no record');
  else if (partitions.length > 1)
    lines.push(`in all     ${countOf(records, 'record')}, ${countOf(prompts, 'prompt')}, ${countOf(tokens, 'token')}`);
  for (const { server, because: why } of report.unkept) lines.push(`not kept   by ${server}: ${why}`);
  lines.push(`next       ${sayNext(report)}`);
  return lines.join('\n');
}

function sayNext({ unkept, byWorker, folder }: PolicyAddReport): string {
  if (unkept.length > 0)
    return `change flags: in the run file, then aerie run ${folder}   it is refused until they keep the rule`;
  if (byWorker) return `aerie status ${folder}   the worker goes on under the rule`;
  return `aerie run ${folder}   with servers that keep the rule`;
}
