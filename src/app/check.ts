/** `aerie check`: the acceptance test of a run's records. Reads only. */
import { checkRun, type CheckResult, hasErrors } from '../delivery/check-run.ts';
import type { OperationContext } from './context.ts';
import { openRunDecoder } from './keep-tokenizer.ts';
import { openForReading, readLiveValues, tokenFactsOf } from './read-run.ts';

export interface CheckInput {
  readonly run: string;
}

export interface CheckReport extends CheckResult {
  readonly run: string;
  readonly folder: string;
  /** Some finding is an error: a trainer would reject or mislearn. */
  readonly hasErrors: boolean;
  /** Ids were decoded and compared with texts. */
  readonly decoded: boolean;
}

export async function runCheck(input: CheckInput, context: OperationContext): Promise<CheckReport> {
  const readable = await openForReading(input.run, context.host);
  try {
    const decoder = await openRunDecoder(readable.run.folder);
    const partitions = readable.ledger.partitions().map(({ name }) => name);
    const result = await checkRun({
      records: inTurn(partitions.map((partition) => () => readLiveValues(readable, partition))),
      ...(decoder === undefined ? {} : { decoder }),
      ...tokenFactsOf(readable.ledger.identity()),
      run: input.run,
      signal: context.drain,
    });
    return {
      run: readable.run.name,
      folder: readable.run.folder,
      ...result,
      hasErrors: hasErrors(result),
      decoded: decoder !== undefined,
    };
  } finally {
    readable.ledger.close();
  }
}

async function* inTurn<T>(sources: readonly (() => AsyncIterable<T>)[]): AsyncGenerator<T> {
  for (const open of sources) yield* open();
}
