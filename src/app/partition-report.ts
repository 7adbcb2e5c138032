/** The numbers of a partition, and why what is not a record is none: rows that were refused, prompts that were set aside. */
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import type { AsideReason } from '../base/aside-reason.ts';
import { systemCodeOf } from '../base/errors.ts';
import { readRejectedReasons } from '../dataset/rejected-reasons.ts';
import type { Ledger, PartitionCounters } from '../ledger/ledger.ts';

export interface PartitionReport extends PartitionCounters {
  /** Refused input rows by reason. */
  readonly rejectedBecause: Readonly<Record<string, number>>;
  /** Prompts set aside by reason. */
  readonly setAsideBecause: Readonly<Partial<Record<AsideReason, number>>>;
}

export async function reportPartitions(ledger: Ledger, folder: string): Promise<PartitionReport[]> {
  const reports: PartitionReport[] = [];
  for (const counters of ledger.partitions()) {
    const rejectedBecause = await reasonsOf(folder, counters);
    reports.push({ ...counters, rejectedBecause, setAsideBecause: ledger.asideCounts(counters.name) });
  }
  return reports;
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
