/** How a session ended, as the operator's answer: undefined = finished. */
import { AerieError } from '../base/errors.ts';
import { formatCount } from '../base/units.ts';
import type { SessionEnd } from '../generation/session.ts';
import type { PartitionCounters } from '../ledger/ledger.ts';

export interface EndedRun {
  readonly folder: string;
  /** What was typed, for the sentence that says how to resume. */
  readonly argument: string;
  readonly partitions: readonly PartitionCounters[];
  /** The signal of `abort`, where there was one. */
  readonly signal: unknown;
}

export function errorOf(end: SessionEnd, ended: EndedRun): AerieError | undefined {
  const done = ended.partitions.reduce((sum, partition) => sum + partition.done, 0);
  const enrolled = ended.partitions.reduce((sum, partition) => sum + partition.enrolled, 0);
  const safe =
    enrolled === 0
      ? 'No prompt was taken yet.'
      : `${formatCount(done)} of ${formatCount(enrolled)} prompts are done and on disk in ${ended.folder}.`;
  const remedy = `${safe} Resume with: aerie run ${ended.argument}`;
  switch (end.kind) {
    case 'finished':
      return undefined;
    case 'drained':
      return new AerieError('run.interrupted', 'Stopped by Ctrl-C. What was in flight was finished and committed.', {
        remedy,
        facts: { done, enrolled },
      });
    case 'aborted': {
      const { requests, tokens } = end;
      const isTerminated = ended.signal === 'SIGTERM';
      const cost = `${formatCount(requests)} ${requests === 1 ? 'request' : 'requests'} in flight, about ${formatCount(tokens)} tokens`;
      const what = `${isTerminated ? 'Stopped by SIGTERM' : 'Stopped by a second Ctrl-C'}. What was answered is committed; given up: ${cost}.`;
      return new AerieError(isTerminated ? 'run.terminated' : 'run.interrupted', what, {
        remedy,
        facts: { done, enrolled, givenUpRequests: requests, givenUpTokens: tokens },
      });
    }
    case 'stopped':
      return sayWhatIsSafe(end.error, safe, { done, enrolled });
  }
}

/** Whatever stopped it, the first question is what is left. */
function sayWhatIsSafe(error: AerieError, safe: string, counts: Readonly<Record<string, number>>): AerieError {
  if (!(error instanceof AerieError)) return error; // thrown by something that is not ours: shown as the bug it is
  const { code, message, detail, cause } = error;
  return new AerieError(
    code,
    message,
    { ...detail, remedy: `${safe}\n${detail.remedy}`, facts: { ...detail.facts, ...counts } },
    cause ?? error,
  );
}
