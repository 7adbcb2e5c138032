/** The answer of `aerie stop`. Pure. */
import type { StopReport } from '../../app/stop.ts';
import { quoteShell } from '../../base/quote-shell.ts';
import { formatCount } from '../../base/units.ts';

export function renderStop({ run, folder, pid, done, enrolled, argument }: StopReport): string {
  return [
    pid === 0 ? `no worker works on run ${run}` : `the worker of run ${run}, pid ${pid}, has ended`,
    `done    ${formatCount(done)} of ${formatCount(enrolled)} prompts, on disk in ${folder}`,
    `next    aerie run ${quoteShell(argument)}   resumes`,
  ].join('\n');
}

export function stopData({ argument: _, ...data }: StopReport): unknown {
  return data;
}
