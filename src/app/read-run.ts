/** A run's records for reading: check, export and status open the ledger read-only, also while a worker writes. */
import { join } from 'node:path';
import { AerieError } from '../base/errors.ts';
import type { Facts } from '../base/events.ts';
import type { UnreadableRecord } from '../delivery/check-run.ts';
import type { CheckFacts } from '../delivery/findings/codes.ts';
import type { Host } from '../host/host.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { openSqliteLedger } from '../ledger/sqlite/open-ledger.ts';
import { parseRecord } from '../shard/parse-record.ts';
import { readRecords } from '../shard/read-shard.ts';
import type { TrainingRecord } from '../shard/record.ts';
import type { RunSpec } from '../spec/run.ts';
import { findRun } from './find-run.ts';

export interface ReadableRun {
  readonly run: RunSpec;
  readonly ledger: Ledger;
}

/** Throws `run.absent` where the run has not begun. */
export async function openForReading(argument: string, host: Host): Promise<ReadableRun> {
  const { run } = await findRun(argument);
  try {
    return { run, ledger: openSqliteLedger(join(run.folder, 'ledger.sqlite'), { clock: host.clock, readOnly: true }) };
  } catch (thrown) {
    if (!(thrown instanceof AerieError) || thrown.code !== 'run.absent') throw thrown;
    throw new AerieError('run.absent', `Run ${run.name} has not begun: there is no ledger in ${run.folder}.`, {
      remedy: `aerie run ${argument}`,
    });
  }
}

/** What the live server said about its tokens, kept in the ledger; zeros where it said nothing. */
export function tokenFactsOf(identity: Facts): { vocabularySize: number; stopIds: number[]; contextTokens: number } {
  const stopIds = String(identity['tokens.stopIds'] ?? '');
  return {
    vocabularySize: Number(identity['tokens.vocabularySize'] ?? 0),
    stopIds: stopIds === '' ? [] : stopIds.split(',').map(Number),
    contextTokens: Number(identity['tokens.contextTokens'] ?? 0),
  };
}

/** All that is known of a run for judging its records. */
export function checkFactsOf({ run, ledger }: ReadableRun): CheckFacts {
  const templateKwargs = Object.fromEntries(run.partitions.map(({ name, ask }) => [name, ask.templateKwargs]));
  return { ...tokenFactsOf(ledger.identity()), templateKwargs };
}

/** The live records of a partition as they stand in the shards, not judged: `check` judges. Bytes that are not what was committed are an `UnreadableRecord`. */
export async function* readLiveValues({ run, ledger }: ReadableRun, partition: string): AsyncGenerator<unknown> {
  for await (const read of readRecords(run.folder, ledger.liveRecords(partition))) {
    if (read.ok) yield JSON.parse(read.line.toString('utf8')) as unknown;
    else yield { partition, id: read.range.id, unreadable: read.because } satisfies UnreadableRecord;
  }
}

/** The live records of a partition; bytes that are not what was committed, or are no record, throw `ledger.damaged`. */
export async function* readLiveRecords({ run, ledger }: ReadableRun, partition: string): AsyncGenerator<TrainingRecord> {
  for await (const read of readRecords(run.folder, ledger.liveRecords(partition))) {
    if (!read.ok) throw damaged(run, partition, read.range.id, read.because);
    yield parseRecord(read.line);
  }
}

function damaged(run: RunSpec, partition: string, id: string, because: string): AerieError {
  return new AerieError('ledger.damaged', `Record ${partition}/${id} cannot be read: ${because}.`, {
    because: 'A shard below records/ was changed, cut or removed after it was written.',
    remedy: `Put ${run.folder}/records back as it was. Nothing was written.`,
  });
}
