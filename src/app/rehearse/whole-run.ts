/** How much a run has to do in all, counted from its sources where they are here; nothing is kept. */
import { openSource } from '../../dataset/open-source.ts';
import type { RunSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import type { PartitionReport } from '../partition-report.ts';

export interface WholeRun {
  /** undefined = not known: a source on the hub is not fetched for this. */
  readonly prompts: number | undefined;
  readonly tokens: number | undefined;
  /** There are more than were counted. */
  readonly isAtLeast: boolean;
}

/** Half a minute of reading; a larger run is told as "at least". */
const MOST_COUNTED = 1_000_000;

export async function sizeWholeRun(
  run: RunSpec,
  rehearsed: readonly PartitionReport[],
  { drain }: OperationContext,
): Promise<WholeRun> {
  let [prompts, tokens, isAtLeast] = [0, 0, false];
  for (const partition of run.partitions) {
    if (partition.from.some((from) => from.startsWith('hf://')))
      return { prompts: undefined, tokens: undefined, isAtLeast: false };
    const most = partition.limit > 0 ? Math.min(partition.limit, MOST_COUNTED) : MOST_COUNTED;
    const counted = await countPrompts(partition, most, drain);
    isAtLeast ||= counted === MOST_COUNTED && partition.limit !== MOST_COUNTED;
    const each = meanTokens(rehearsed, partition.name);
    const whole = counted * each;
    const isCapped = partition.budget > 0 && partition.budget < whole;
    prompts += isCapped && each > 0 ? Math.ceil(partition.budget / each) : counted;
    tokens += isCapped ? partition.budget : whole;
  }
  return { prompts, tokens, isAtLeast };
}

async function countPrompts(
  { from, columns, turns }: RunSpec['partitions'][number],
  most: number,
  signal: AbortSignal,
): Promise<number> {
  const source = await openSource(from, { rows: { turns, columns }, signal });
  let count = 0;
  for await (const batch of source.batches({ skipRows: 0, mostPrompts: most, signal })) count += batch.prompts.length;
  return count;
}

/** Generated for one prompt of this partition; of all of them where this one was not rehearsed. */
function meanTokens(rehearsed: readonly PartitionReport[], name: string): number {
  const own = rehearsed.filter((partition) => partition.name === name && partition.done > 0);
  const from = own.length > 0 ? own : rehearsed;
  const done = from.reduce((sum, partition) => sum + partition.done, 0);
  return done === 0 ? 0 : from.reduce((sum, { spentTokens }) => sum + spentTokens, 0) / done;
}
