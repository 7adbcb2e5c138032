/**
 * `aerie preview`: at most ten records that a person can read, made by the real machinery in a folder that is thrown away.
 * The run itself is neither begun nor touched.
 */
import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { AsideReason } from '../base/aside-reason.ts';
import { AerieError } from '../base/errors.ts';
import type { Event } from '../base/events.ts';
import { type RefusedRows, readRefusedRows } from '../dataset/rejected-reasons.ts';
import type { PartitionCounters } from '../ledger/ledger.ts';
import { openSqliteLedger } from '../ledger/sqlite/open-ledger.ts';
import type { TrainingRecord } from '../shard/record.ts';
import type { RunSpec } from '../spec/run.ts';
import type { OperationContext } from './context.ts';
import { findRun } from './find-run.ts';
import { holdServers } from './hold-servers.ts';
import { rulesOf } from './policy-in-force.ts';
import { readLiveRecords } from './read-run.ts';
import { workOn } from './run.ts';
import { refuseBeforeStart } from './servers/refuse-before-start.ts';
import { firstPromptsOf, isStop, makeThrowaway, stoppedEarly, withoutFolder } from './throwaway.ts';

export interface PreviewInput {
  readonly run: string;
}

/** What a server will give, said before anything was asked of it. */
export interface ExpectedIds {
  readonly server: string;
  readonly exact: boolean;
  /** How the ids are had. */
  readonly how: string;
  /** Why records will not be exact, '' where they will. */
  readonly because: string;
  /** The same of prompts with tools. */
  readonly becauseWithTools: string;
}

export interface PreviewReport {
  readonly run: string;
  readonly expected: readonly ExpectedIds[];
  readonly records: readonly TrainingRecord[];
  readonly exact: boolean;
  /** Why records are not exact, '' where they are. */
  readonly because: string;
  readonly rejected: number;
  /** The rows that gave no prompt, by partition and reason, and the first of each. */
  readonly refused: readonly ({ readonly partition: string } & RefusedRows)[];
  /** Prompts that the server gave no answer to. */
  readonly setAsides: readonly {
    readonly partition: string;
    readonly id: string;
    readonly reason: AsideReason;
    readonly because: string;
  }[];
}

const MOST_RECORDS = 10; // as many as a person reads

export async function runPreview(input: PreviewInput, context: OperationContext): Promise<PreviewReport> {
  const found = (await findRun(input.run)).run;
  refuseBeforeStart(found, context.host.env); // before anything is made for it
  // Rules that were added to the run hold here too; what a preview launches, the run will find.
  const policy = await rulesOf(input.run, found, context.host);
  const { run, release } = await holdServers({ ...found, policy }, context);
  try {
    return await previewRun(run, input.run, context);
  } finally {
    release();
  }
}

async function previewRun(run: RunSpec, argument: string, context: OperationContext): Promise<PreviewReport> {
  const folder = await makeThrowaway('preview');
  try {
    const expected = new Map<string, ExpectedIds>();
    const onEvent = (event: Event) => {
      // The run itself neither begins nor ends here, so nothing is said about how to resume it.
      if (event.kind.startsWith('run.')) return;
      context.onEvent(event);
      if (event.kind !== 'server.ready') return;
      const said = expectedOf(event);
      expected.set(said.server, said);
      if (said.exact) context.onNote(`${said.server}: records will be exact, by ${said.how}`);
    };
    await workOn(firstPromptsOf(run, folder, MOST_RECORDS), argument, { ...context, onEvent }).catch((thrown: unknown) => {
      if (!(thrown instanceof AerieError)) throw thrown;
      throw isStop(thrown) ? stoppedEarly(thrown, 'The preview') : withoutFolder(thrown, folder, 'a preview');
    });
    const ledger = openSqliteLedger(join(folder, 'ledger.sqlite'), { clock: context.host.clock, readOnly: true });
    try {
      const records: TrainingRecord[] = [];
      for (const { name } of run.partitions) {
        for await (const record of readLiveRecords({ run: { ...run, folder }, ledger }, name)) records.push(record);
      }
      const inexact = records.find(({ exact }) => !exact);
      const rejected = ledger.partitions().reduce((sum, partition) => sum + partition.rejected, 0);
      return {
        run: run.name,
        expected: [...expected.values()],
        records: records.slice(0, MOST_RECORDS),
        exact: records.length > 0 && inexact === undefined,
        because: inexact?.inexactBecause ?? '',
        rejected,
        refused: await refusedIn(folder, ledger.partitions()),
        setAsides: ledger.partitions().flatMap(({ name }) => ledger.setAsides(name)),
      };
    } finally {
      ledger.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function expectedOf({ subject, facts }: Event): ExpectedIds {
  const because = String(facts['inexactBecause'] ?? '');
  const becauseWithTools = String(facts['inexactWithTools'] ?? because);
  return { server: subject, exact: because === '', how: String(facts['ids'] ?? ''), because, becauseWithTools };
}

async function refusedIn(folder: string, partitions: readonly PartitionCounters[]): Promise<PreviewReport['refused']> {
  const refused: PreviewReport['refused'][number][] = [];
  for (const { name, rejected, rejectedBytes } of partitions) {
    if (rejected === 0) continue;
    const rows = await readRefusedRows(createReadStream(join(folder, 'rejected', `${name}.ndjson`), { end: rejectedBytes - 1 }));
    refused.push(...rows.map((row) => ({ partition: name, ...row })));
  }
  return refused;
}
