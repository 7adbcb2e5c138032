/**
 * Enrolment: a source's rows → normalised prompts in `prompts/NAME.jsonl`, refused rows in `rejected/NAME.ndjson`, and
 * both accounted for in the ledger, batch by batch. Generation starts while it streams. Files first, ledger second: what
 * lies past the ledger's byte counts was never committed and is cut at the next start.
 */
import { join } from 'node:path';
import type { Prompt } from '../base/conversation.ts';
import { AerieError } from '../base/errors.ts';
import type { Event, Happening } from '../base/events.ts';
import { openSource, type RejectedRow, type SourceBatch } from '../dataset/open-source.ts';
import { renderPromptLine } from '../dataset/prompt-id.ts';
import { REJECTION_SENTENCE } from '../dataset/rejection.ts';
import type { EnrolBatch, EnrolledPrompt, Ledger, PartitionCounters } from '../ledger/ledger.ts';
import { type LineFile, openLineFile } from '../shard/line-file.ts';
import { countTurns } from '../shard/walk-conversation.ts';
import type { PartitionSpec } from '../spec/run.ts';

export interface EnrolOptions {
  readonly partition: PartitionSpec;
  readonly ledger: Ledger;
  /** The run folder. */
  readonly folder: string;
  readonly signal: AbortSignal;
  /** The first refused row is an error, and its batch is not taken. */
  readonly isStrict: boolean;
  /** HF_TOKEN, HF_ENDPOINT, AERIE_CACHE. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Told before a download. */
  readonly onNote: (text: string) => void;
  readonly onEvents: (events: readonly Event[]) => void;
  /** Told after each batch is in the ledger. */
  readonly onBatch: () => void;
}

/** Reads on from where the last worker stopped. Returns at once when there is nothing left to read. */
export async function enrolPartition(options: EnrolOptions): Promise<void> {
  const { partition, ledger, folder, signal } = options;
  let counters = countersOf(ledger, partition.name);
  if (isFinished(counters, partition.limit)) return;
  const source = await openSource(partition.from, {
    rows: { turns: partition.turns, columns: partition.columns },
    pin: counters.pin,
    env: options.env,
    onNote: options.onNote,
    signal,
  });
  const prompts = await openLineFile(join(folder, 'prompts', `${partition.name}.jsonl`), counters.promptsBytes);
  const rejected = await openLineFile(join(folder, 'rejected', `${partition.name}.ndjson`), counters.rejectedBytes);
  try {
    // Several passes only where a limit meets duplicates: each pass asks for what the limit still lacks.
    while (!isFinished(counters, partition.limit) && !signal.aborted) {
      const request = {
        skipRows: counters.sourceRows,
        signal,
        ...(partition.limit > 0 ? { mostPrompts: partition.limit - counters.enrolled } : {}),
      };
      for await (const batch of source.batches(request)) {
        await enrolBatch(batch, { prompts, rejected }, options);
      }
      counters = countersOf(ledger, partition.name);
    }
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
  } finally {
    await prompts.close();
    await rejected.close();
  }
}

/** Nothing more to read: the source's end was seen, or the limit is reached. */
export function isFinished(counters: PartitionCounters, limit: number): boolean {
  return counters.enrolment === 'complete' || (limit > 0 && counters.enrolled >= limit);
}

async function enrolBatch(
  batch: SourceBatch,
  files: { prompts: LineFile; rejected: LineFile },
  options: EnrolOptions,
): Promise<void> {
  const { partition, ledger } = options;
  const [refused] = batch.rejected;
  if (options.isStrict && refused !== undefined) throw rowRefused(partition, refused);
  const { fresh, duplicates } = withoutDuplicates(batch.prompts, ledger, partition.name);
  const ranges = await files.prompts.append(fresh.map((prompt) => Buffer.from(`${renderPromptLine(prompt)}\n`)));
  await files.rejected.append(batch.rejected.map((row) => Buffer.from(renderRejected(row))));
  const before = countersOf(ledger, partition.name);
  const enrolled = before.enrolled + fresh.length;
  const enrolment = batch.ended ? 'complete' : partition.limit > 0 && enrolled >= partition.limit ? 'limited' : 'open';
  const rows: EnrolledPrompt[] = fresh.map((prompt, at) => ({
    id: prompt.id,
    offset: ranges[at]?.offset ?? 0,
    bytes: ranges[at]?.bytes ?? 0,
    turns: countTurns(prompt.messages),
  }));
  const happenings: Happening[] = [];
  if (enrolment !== 'open') {
    const facts = {
      prompts: enrolled,
      duplicates: before.duplicates + duplicates,
      rejected: before.rejected + batch.rejected.length,
      rows: batch.rows,
    };
    happenings.push({ kind: 'partition.enrolled', subject: partition.name, facts });
  }
  const row: EnrolBatch = {
    partition: partition.name,
    prompts: rows,
    duplicates,
    rejected: batch.rejected.length,
    sourceRows: batch.rows,
    promptsBytes: files.prompts.durableBytes,
    rejectedBytes: files.rejected.durableBytes,
    enrolment,
    pin: batch.pin,
    happenings,
  };
  options.onEvents(ledger.enrol(row));
  options.onBatch();
}

/** The prompts that are new in the partition, each once, in order. */
function withoutDuplicates(
  prompts: readonly Prompt[],
  ledger: Ledger,
  partition: string,
): { fresh: Prompt[]; duplicates: number } {
  const known = ledger.knownIds(
    partition,
    prompts.map(({ id }) => id),
  );
  const seen = new Set<string>();
  const fresh = prompts.filter(({ id }) => {
    if (known.has(id) || seen.has(id)) return false;
    seen.add(id);
    return true;
  });
  return { fresh, duplicates: prompts.length - fresh.length };
}

function renderRejected({ row, reason, detail, excerpt, file }: RejectedRow): string {
  const place = file === undefined ? { line: row } : { file, line: row };
  return `${JSON.stringify({ ...place, reason, detail, excerpt })}\n`;
}

function rowRefused({ name, from }: PartitionSpec, { row, reason, detail, excerpt, file }: RejectedRow): AerieError {
  return new AerieError('source.row-refused', `Row ${row} of ${file ?? from[0] ?? ''} is refused: ${reason}.`, {
    because: `${REJECTION_SENTENCE[reason]} Here: ${detail}.`,
    evidence: [excerpt],
    remedy: 'Correct the row, or run without --strict: refused rows are then counted and kept out.',
    facts: { partition: name, row, reason },
  });
}

function countersOf(ledger: Ledger, partition: string): PartitionCounters {
  const counters = ledger.partitions().find(({ name }) => name === partition);
  if (counters === undefined) throw new Error(`the ledger has no partition ${partition}`);
  return counters;
}
