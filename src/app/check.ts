/** `aerie check`: the acceptance test of a run's records. Reads only. */
import { AerieError } from '../base/errors.ts';
import { formatCount } from '../base/units.ts';
import { type CheckResult, checkRun, hasErrors } from '../delivery/check-run.ts';
import { type BenchmarkPrompts, indexBenchmarks, parseBenchmarks } from '../delivery/findings/benchmark-overlap.ts';
import { readText } from '../host/read-text.ts';
import type { OperationContext } from './context.ts';
import { openRunDecoder } from './keep-tokenizer.ts';
import { checkFactsOf, openForReading, readLiveValues } from './read-run.ts';

export interface CheckInput {
  readonly run: string;
  /** A trainer cuts rows at so many tokens. Left out: `DEFAULT_MAX_LENGTH`. */
  readonly maxLength?: number;
  /** A file of prompts that later measurements are made with. */
  readonly benchmarks?: string;
}

export interface CheckReport extends CheckResult {
  readonly run: string;
  readonly folder: string;
  /** Some finding is an error: a trainer would reject or mislearn. */
  readonly hasErrors: boolean;
  /** What of the run's tokenizer there was to compare with. */
  readonly tokenizer: 'none' | 'without-template' | 'whole';
  /** Benchmark prompts that were compared with, and lines of the list that hold none. */
  readonly benchmarks?: { readonly prompts: number; readonly unread: number };
}

/** The benchmarks in use have some MB together; a file like this was named by mistake. */
const MOST_LIST_BYTES = 256 * 2 ** 20;

export async function runCheck(input: CheckInput, context: OperationContext): Promise<CheckReport> {
  const list = input.benchmarks === undefined ? undefined : await readBenchmarks(input.benchmarks);
  const readable = await openForReading(input.run, context.host);
  try {
    const decoder = await openRunDecoder(readable.run.folder);
    const partitions = readable.ledger.partitions().map(({ name }) => name);
    const result = await checkRun({
      records: inTurn(partitions.map((partition) => () => readLiveValues(readable, partition))),
      ...(decoder === undefined ? {} : { decoder }),
      ...checkFactsOf(readable),
      ...(input.maxLength === undefined ? {} : { maxLength: input.maxLength }),
      ...(list === undefined ? {} : { benchmarks: list.index }),
      run: input.run,
      signal: context.drain,
    });
    return {
      run: readable.run.name,
      folder: readable.run.folder,
      ...result,
      hasErrors: hasErrors(result),
      tokenizer: decoder === undefined ? 'none' : decoder.renderChat === undefined ? 'without-template' : 'whole',
      ...(list === undefined ? {} : { benchmarks: { prompts: list.index.count, unread: list.unread } }),
    };
  } finally {
    readable.ledger.close();
  }
}

/** The prompts of `--benchmarks FILE`, also for `aerie export --without benchmark-overlap`. */
export async function readBenchmarks(path: string): Promise<{ index: BenchmarkPrompts; unread: number }> {
  const wrong = (message: string, because: string, cause?: unknown) =>
    new AerieError(
      'usage.flag',
      message,
      {
        because,
        remedy:
          '--benchmarks takes a file of JSON lines (prompt, question, instruction, turns or messages), a JSON array, or text with a prompt on each line.',
      },
      cause,
    );
  const text = await readText(path, MOST_LIST_BYTES).catch((thrown: unknown) => {
    throw wrong(`The benchmark list ${path} cannot be read.`, thrown instanceof Error ? thrown.message : String(thrown), thrown);
  });
  const { prompts, unread } = parseBenchmarks(text);
  if (prompts.length === 0)
    throw wrong(`The benchmark list ${path} holds no prompt.`, `${formatCount(unread)} lines were looked at`);
  return { index: indexBenchmarks(prompts), unread };
}

async function* inTurn<T>(sources: readonly (() => AsyncIterable<T>)[]): AsyncGenerator<T> {
  for (const open of sources) yield* open();
}
