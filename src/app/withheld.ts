/** `--without FINDING`: which records of a run an export leaves out, and the run's records with those that cannot be read. */
import { findIds, type UnreadableRecord } from '../delivery/check-run.ts';
import type { BenchmarkPrompts } from '../delivery/findings/benchmark-overlap.ts';
import type { FindingCode } from '../delivery/findings/codes.ts';
import { findRecordProblem, parseRecord } from '../shard/parse-record.ts';
import type { TrainingRecord } from '../shard/record.ts';
import type { OperationContext } from './context.ts';
import { openRunDecoder } from './keep-tokenizer.ts';
import { checkFactsOf, type ReadableRun, readLiveRecords, readLiveValues } from './read-run.ts';

/** `partition/id` → the finding for which it is left out: the first in the order they were named. */
export type Withheld = ReadonlyMap<string, FindingCode>;

export interface WithheldRequest {
  readonly codes: readonly FindingCode[];
  /** As `check` was asked: the same records have the findings then. */
  readonly maxLength?: number;
  readonly benchmarks?: BenchmarkPrompts;
  /** How the run was named. */
  readonly run: string;
}

/** Reads the run once for each finding, as `check` does: some are seen only over the whole run. */
export async function findWithheld(
  readable: ReadableRun,
  request: WithheldRequest,
  context: OperationContext,
): Promise<Withheld> {
  const withheld = new Map<string, FindingCode>();
  if (request.codes.length === 0) return withheld;
  const decoder = await openRunDecoder(readable.run.folder);
  for (const code of request.codes) {
    const keys = await findIds(code, {
      records: everyValue(readable),
      ...(decoder === undefined ? {} : { decoder }),
      ...checkFactsOf(readable),
      ...(request.maxLength === undefined ? {} : { maxLength: request.maxLength }),
      ...(request.benchmarks === undefined ? {} : { benchmarks: request.benchmarks }),
      run: request.run,
      signal: context.drain,
    });
    for (const key of keys) if (!withheld.has(key)) withheld.set(key, code);
  }
  return withheld;
}

async function* everyValue(readable: ReadableRun): AsyncGenerator<unknown> {
  for (const { name } of readable.ledger.partitions()) yield* readLiveValues(readable, name);
}

/** The records of a partition; those that cannot be read come as such where they are withheld, and throw where they are not. */
export async function* readUnlessWithheld(
  readable: ReadableRun,
  partition: string,
  withheld: Withheld,
): AsyncGenerator<TrainingRecord | UnreadableRecord> {
  if (![...withheld.values()].some((code) => code === 'record-unreadable' || code === 'record-shape')) {
    yield* readLiveRecords(readable, partition);
    return;
  }
  for await (const value of readLiveValues(readable, partition)) {
    const { id } = value as { readonly id?: unknown };
    const problem = findRecordProblem(value);
    if (problem === undefined) yield value as TrainingRecord;
    else if (withheld.has(`${partition}/${String(id)}`)) yield { partition, id: String(id), unreadable: problem };
    else yield parseRecord(Buffer.from(JSON.stringify(value))); // throws, and says what is wrong
  }
}
