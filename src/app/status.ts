/** `aerie status`: what is done, set aside and refused. Reads only, also while a worker writes. */
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { systemCodeOf } from '../base/errors.ts';
import { readRejectedReasons } from '../dataset/rejected-reasons.ts';
import type { PartitionCounters } from '../ledger/ledger.ts';
import type { OperationContext } from './context.ts';
import { openForReading } from './read-run.ts';

export interface StatusInput {
  readonly run: string;
}

export interface StatusReport {
  readonly run: string;
  readonly folder: string;
  readonly partitions: readonly (PartitionCounters & {
    /** Refused input rows by reason. */
    readonly rejectedBecause: Readonly<Record<string, number>>;
  })[];
  /** Prompts that were set aside, the first of them. */
  readonly setAsides: readonly { readonly partition: string; readonly id: string; readonly because: string }[];
  /** Attempts by outcome. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Nothing is left to do, as far as is known without looking at the sources. */
  readonly isFinished: boolean;
}

/** A person reads a screen; `--json` readers find all of them in the ledger. */
const MOST_SHOWN = 20;

export async function runStatus(input: StatusInput, context: OperationContext): Promise<StatusReport> {
  const { run, ledger } = await openForReading(input.run, context.host);
  try {
    const partitions: StatusReport['partitions'][number][] = [];
    for (const counters of ledger.partitions()) {
      partitions.push({ ...counters, rejectedBecause: await reasonsOf(run.folder, counters) });
    }
    const setAsides = partitions.flatMap(({ name }) => ledger.setAsides(name)).slice(0, MOST_SHOWN);
    const isFinished = partitions.every(
      ({ waiting, leased, redoing, enrolment, budget, spentTokens }) =>
        (enrolment !== 'open' && waiting + leased === 0) || (budget > 0 && spentTokens >= budget && redoing === 0),
    );
    return { run: run.name, folder: run.folder, partitions, setAsides, outcomes: ledger.outcomeCounts(), isFinished };
  } finally {
    ledger.close();
  }
}

/** Counted by the ledger; why is told by a file that people may have moved away: then only that is not known. */
async function reasonsOf(folder: string, { name, rejected, rejectedBytes }: PartitionCounters): Promise<Record<string, number>> {
  if (rejected === 0) return {};
  const path = join(folder, 'rejected', `${name}.ndjson`);
  try {
    return await readRejectedReasons(createReadStream(path, { end: rejectedBytes - 1 }));
  } catch (thrown) {
    if (systemCodeOf(thrown) === '') throw thrown;
    return { unreadable: rejected };
  }
}
