/** How many files a run needs open, and how many the system allows: asked by `doctor`, and by a run that is about to start. */
import type { RunSpec } from '../../spec/run.ts';
import { judgeOpenFiles, type Needs } from './judge.ts';

/** A sentence where requests would be lost for want of open files; '' = there are enough. */
export function warnOfOpenFiles(run: RunSpec): string {
  const { verdict, says, next } = judgeOpenFiles(openFileLimit(), needsOf(run));
  return verdict === 'fails' ? `open files: ${says}. ${next}` : '';
}

export function needsOf(run: RunSpec | undefined): Needs {
  if (run === undefined) return { inFlight: 0, servers: 0, partitions: 0, budgetTokens: 0, embedded: false };
  return {
    inFlight: run.isInFlightAuto ? 0 : run.inFlight,
    servers: run.servers.length,
    partitions: run.partitions.length,
    budgetTokens: run.partitions.reduce((sum, { budget }) => sum + budget, 0),
    embedded: run.servers.some(({ engine, attach }) => engine === 'embedded' && attach === undefined),
  };
}

/** What the system allows this process (node has raised it to the hard limit at its start); infinite where it does not say. */
export function openFileLimit(): number {
  const report = process.report as NodeJS.ProcessReport & { excludeNetwork: boolean }; // the types lack it
  const before = report.excludeNetwork;
  report.excludeNetwork = true; // else every open socket's name is looked up
  const { userLimits } = report.getReport() as { userLimits?: { open_files?: { soft?: number | 'unlimited' } } };
  report.excludeNetwork = before;
  const soft = userLimits?.open_files?.soft;
  return typeof soft === 'number' ? soft : Number.POSITIVE_INFINITY;
}
