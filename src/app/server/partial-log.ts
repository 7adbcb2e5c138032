/** What is said, and how the command ends, where the log that was asked for could not be shown whole and fresh. Pure. */
import { AerieError } from '../../base/errors.ts';
import { formatCount } from '../../base/units.ts';

export interface KeptCopy {
  /** Of what was kept of the log here. */
  readonly path: string;
  readonly size: number;
  /** Why the log itself is not read. */
  readonly why: AerieError;
}

export interface ShownLog {
  readonly lines: number;
  readonly bytes: number;
  /** Of these, from the copy. */
  readonly keptBytes: number;
}

/** The error of the machine, with what was shown all the same: exit 5 where the rest can still come, 2 where there is no more of it. */
export function partialLog(machine: string, { path, size, why }: KeptCopy, { lines, bytes, keptBytes }: ShownLog): AerieError {
  const count = (amount: number, what: string) => `${formatCount(amount)} ${what}${amount === 1 ? '' : 's'}`;
  const isLost = why.code === 'log.unreadable';
  return new AerieError(
    why.code,
    `The log was not shown whole and fresh: ${count(lines, 'line')} (${count(bytes, 'byte')}) were, ${formatCount(bytes - keptBytes)} of the bytes from ${machine} and ${formatCount(keptBytes)} from what was kept of it here.`,
    {
      because: why.message,
      remedy: isLost
        ? `What was kept is all that is left of it, and may lack its end:  ${path} (${count(size, 'byte')})`
        : `${machine} has the rest. ${why.detail.remedy}\nWhat was kept of it here:  ${path} (${count(size, 'byte')})`,
      facts: { lines, bytes, keptBytes, copyBytes: size },
    },
  );
}
