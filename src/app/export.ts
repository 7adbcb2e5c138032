/** `aerie export`: a run's live records as files that a trainer reads. The run itself is only read. */
import { join, resolve } from 'node:path';
import { exportNotes, type ExportResult, type ExportTarget } from '../delivery/export-manifest.ts';
import { exportRun } from '../delivery/export-run.ts';
import type { OperationContext } from './context.ts';
import { openForReading, readLiveRecords, tokenFactsOf } from './read-run.ts';

export interface ExportInput {
  readonly run: string;
  readonly target: ExportTarget;
  /** Left out: `export/TARGET` in the run folder. */
  readonly folder?: string;
}

export interface ExportReport extends ExportResult {
  readonly run: string;
  /** Prompts that have no record yet; an export may be made at any time. */
  readonly unfinished: number;
  readonly notes: readonly string[];
}

export async function runExport(input: ExportInput, context: OperationContext): Promise<ExportReport> {
  const readable = await openForReading(input.run, context.host);
  try {
    const partitions = readable.ledger.partitions();
    const result = await exportRun({
      sources: partitions.map(({ name }) => ({ partition: name, open: () => readLiveRecords(readable, name) })),
      target: input.target,
      folder: input.folder === undefined ? join(readable.run.folder, 'export', input.target) : resolve(input.folder),
      vocabularySize: tokenFactsOf(readable.ledger.identity()).vocabularySize,
      signal: context.drain,
    });
    const unfinished = partitions.reduce((sum, { waiting, leased }) => sum + waiting + leased, 0);
    return { run: readable.run.name, ...result, unfinished, notes: exportNotes(result) };
  } finally {
    readable.ledger.close();
  }
}
