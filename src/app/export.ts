/** `aerie export`: a run's live records as files that a trainer reads. The run itself is only read. */
import { join, resolve } from 'node:path';
import { AerieError } from '../base/errors.ts';
import { countsLine, type ExportResult, exportNotes } from '../delivery/export-manifest.ts';
import { exportRun } from '../delivery/export-run.ts';
import { EXPORT_TARGETS, type ExportTarget } from '../delivery/export-targets.ts';
import { FINDING_CODES, type FindingCode } from '../delivery/findings/codes.ts';
import type { PartitionCounters } from '../ledger/ledger.ts';
import { readBenchmarks } from './check.ts';
import type { OperationContext } from './context.ts';
import { openForReading, tokenFactsOf } from './read-run.ts';
import { findWithheld, readUnlessWithheld } from './withheld.ts';

export interface ExportInput {
  readonly run: string;
  readonly target: ExportTarget;
  /** Left out: `export/TARGET` in the run folder. */
  readonly folder?: string;
  /** Left out: all of them. */
  readonly partitions?: readonly string[];
  /** Records with one of these findings of `check` are left out. */
  readonly without?: readonly string[];
  /** Of `check`, which the findings depend on. */
  readonly maxLength?: number;
  readonly benchmarks?: string;
  /** Share of the prompts for `held-out/`. */
  readonly heldOut?: number;
  readonly extendMask?: boolean;
  readonly counts?: boolean;
  /** Size of the draft vocabulary; asks for counts too. */
  readonly draftVocab?: number;
  /** Size of the target's vocabulary, where the server did not say it or the model pads it. */
  readonly targetVocab?: number;
}

export interface ExportReport extends ExportResult {
  readonly run: string;
  /** Prompts that have no record yet; an export may be made at any time. */
  readonly unfinished: number;
  readonly notes: readonly string[];
}

export async function runExport(input: ExportInput, context: OperationContext): Promise<ExportReport> {
  refuseFlags(input);
  const list = input.benchmarks === undefined ? undefined : await readBenchmarks(input.benchmarks);
  const readable = await openForReading(input.run, context.host);
  try {
    const partitions = choosePartitions(readable.ledger.partitions(), input.partitions ?? []);
    const vocabularySize = input.targetVocab ?? tokenFactsOf(readable.ledger.identity()).vocabularySize;
    const codes = (input.without ?? []) as readonly FindingCode[]; // refuseFlags has looked
    const withheld = await findWithheld(
      readable,
      {
        codes,
        run: input.run,
        ...(input.maxLength === undefined ? {} : { maxLength: input.maxLength }),
        ...(list === undefined ? {} : { benchmarks: list.index }),
      },
      context,
    );
    const wantsCounts = input.counts === true || input.draftVocab !== undefined;
    const result = await exportRun({
      sources: partitions.map(({ name }) => ({ partition: name, open: () => readUnlessWithheld(readable, name, withheld) })),
      target: input.target,
      folder: input.folder === undefined ? join(readable.run.folder, 'export', input.target) : resolve(input.folder),
      vocabularySize,
      extendMask: input.extendMask ?? false,
      heldOut: input.heldOut ?? 0,
      withheldBecause: ({ partition, id }) => withheld.get(`${partition}/${id}`),
      ...(wantsCounts ? { counts: { draftVocabulary: input.draftVocab ?? 0, vocabularySize } } : {}),
      signal: context.drain,
    });
    const unfinished = partitions.reduce((sum, { waiting, leased }) => sum + waiting + leased, 0);
    return { run: readable.run.name, ...result, unfinished, notes: exportNotes(result) };
  } finally {
    readable.ledger.close();
  }
}

function refuseFlags(input: ExportInput): void {
  const { target, heldOut = 0, draftVocab = 1, targetVocab = 1, without = [] } = input;
  if (!EXPORT_TARGETS.includes(target))
    throw wrongFlag(`There is no trainer ${target}.`, `Give one of ${EXPORT_TARGETS.join(', ')}.`);
  if (!(heldOut >= 0 && heldOut < 1))
    throw wrongFlag(`--held-out ${heldOut} is no share.`, 'Give a number from 0 to below 1, such as 0.02.');
  for (const size of [draftVocab, targetVocab]) {
    if (!Number.isSafeInteger(size) || size < 1)
      throw wrongFlag(`A vocabulary of ${size} is none.`, 'Give a whole number, such as 32000.');
  }
  if (input.extendMask === true && target !== 'specforge') {
    throw wrongFlag(`--extend-mask is made for the way in which SpecForge shifts a mask, not for ${target}.`, 'Leave it out.');
  }
  const unknown = without.find((code) => !(FINDING_CODES as readonly string[]).includes(code));
  if (without.includes('benchmark-overlap') && input.benchmarks === undefined) {
    throw wrongFlag('benchmark-overlap is with a list, and none was given.', 'Add --benchmarks FILE, as for check.');
  }
  if (unknown !== undefined) throw wrongFlag(`check has no finding ${unknown}.`, `Give one of ${FINDING_CODES.join(', ')}.`);
}

function choosePartitions(all: readonly PartitionCounters[], names: readonly string[]): readonly PartitionCounters[] {
  const unknown = names.find((wanted) => !all.some(({ name }) => name === wanted));
  if (unknown !== undefined) {
    throw wrongFlag(`The run has no partition ${unknown}.`, `Give one of ${all.map(({ name }) => name).join(', ')}.`);
  }
  return names.length === 0 ? all : all.filter(({ name }) => names.includes(name));
}

function wrongFlag(message: string, remedy: string): AerieError {
  return new AerieError('usage.flag', message, { remedy: `${remedy} Nothing was written.` });
}

/** What `--counts` found, in one line. */
export function renderCounts(report: ExportReport): string | undefined {
  return report.counts === undefined ? undefined : countsLine(report.counts);
}
