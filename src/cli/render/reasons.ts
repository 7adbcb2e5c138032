/** Why rows and prompts of a partition are no records: a line for each reason, under the table that counts them. Pure. */
import type { RunReport } from '../../app/run.ts';
import { ASIDE_EXPLANATION, ASIDE_REASONS } from '../../base/aside-reason.ts';
import { formatCount } from '../../base/units.ts';

/** `run`: how the person may name the run in a command. */
export function renderReasons(partitions: RunReport['partitions'], run: string): string[] {
  return partitions.flatMap(({ name, rejectedBecause, setAsideBecause }) => [
    ...Object.entries(rejectedBecause).map(
      ([reason, count]) =>
        `refused    ${name}  ${formatCount(count)} × ${reason}   (rejected/${name}.ndjson has line and reason)`,
    ),
    ...ASIDE_REASONS.flatMap((reason) => {
      const count = setAsideBecause[reason] ?? 0;
      const { sentence, next } = ASIDE_EXPLANATION[reason];
      if (count === 0) return [];
      return [`set aside  ${name}  ${formatCount(count)} × ${reason}   ${sentence}`, `           ${next.replaceAll('RUN', run)}`];
    }),
  ]);
}
