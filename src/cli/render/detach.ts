/** The answer of `aerie run --detach`: who works, where its words go, how to look and how to stop it. Pure. */
import type { DetachReport } from '../../app/detach/start-worker.ts';
import { quoteShell } from '../../base/quote-shell.ts';

export function renderDetach({ run, folder, pid, log, argument }: DetachReport): string {
  const target = quoteShell(argument);
  return [
    `run ${run} works on without this terminal, pid ${pid}`,
    `folder  ${folder}`,
    `log     ${log === '' ? 'none: no file could be made for it; aerie status shows what happens' : log}`,
    `look    aerie status ${target}            how it stands, at any time`,
    `        aerie status ${target} --follow   until it ends, with its exit code`,
    `stop    aerie stop ${target}              finishes what is in flight, commits, ends; aerie run ${target} resumes`,
  ].join('\n');
}

export function detachData({ argument: _, ...data }: DetachReport): unknown {
  return data;
}
