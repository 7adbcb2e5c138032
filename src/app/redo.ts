/**
 * New attempts that a person asks for: `--retry-failed` (prompts without a record wait again) and `--redo` (finished prompts
 * are asked anew; their records stay live until the new ones are committed). Marked in the ledger before anything is asked, so
 * that a run that is stopped goes on with them under the plain command.
 */
import { AerieError } from '../base/errors.ts';
import { findIds } from '../delivery/check-run.ts';
import type { BenchmarkPrompts } from '../delivery/findings/benchmark-overlap.ts';
import type { FindingCode } from '../delivery/findings/codes.ts';
import { FINDING_CODES } from '../delivery/findings/codes.ts';
import { findNearest } from '../spec/nearest.ts';
import { openRunDecoder } from './keep-tokenizer.ts';
import { checkFactsOf, readLiveValues } from './read-run.ts';
import type { Job } from './workplace.ts';

export interface RedoTargets {
  readonly codes: readonly FindingCode[];
  /** `id` or `partition/id`. */
  readonly ids: readonly string[];
  /** As `check` was asked: the same records have the findings then. */
  readonly maxLength?: number;
  readonly benchmarks?: BenchmarkPrompts;
}

export interface NewAttempts {
  readonly retryFailed: boolean;
  readonly redo: RedoTargets;
}

export const NO_NEW_ATTEMPTS: NewAttempts = { retryFailed: false, redo: { codes: [], ids: [] } };

/** 26 base32 characters, with or without the partition before them. */
const ID = /^([A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\/)?[a-z2-7]{26}$/;

/** What stands after `--redo`: finding codes and prompt ids, with commas between. Throws `usage.flag`. */
export function parseRedo(written: string): RedoTargets {
  const words = written.split(',').map((word) => word.trim());
  const codes = words.filter((word) => isCode(word));
  const ids = words.filter((word) => ID.test(word));
  const other = words.find((word) => !isCode(word) && !ID.test(word));
  if (other === undefined) return { codes, ids };
  const near = findNearest(other, FINDING_CODES);
  throw new AerieError(
    'usage.flag',
    `--redo ${JSON.stringify(other)} is neither a finding of aerie check nor the id of a prompt.`,
    {
      remedy: `${near === undefined ? '' : `Did you mean ${near}? `}Give findings or ids (partition/id) with commas between. Findings: ${FINDING_CODES.join(', ')}. Nothing was started.`,
    },
  );
}

function isCode(word: string): word is FindingCode {
  return (FINDING_CODES as readonly string[]).includes(word);
}

export async function markNewAttempts(job: Job, { retryFailed, redo }: NewAttempts, argument: string): Promise<void> {
  const { run, ledger, context, onEvents } = job;
  const names = run.partitions.map(({ name }) => name);
  if (retryFailed) {
    let waiting = 0;
    for (const name of names) {
      const { aside, dropped, events } = ledger.requeue(name);
      waiting += aside + dropped;
      onEvents(events);
    }
    if (waiting === 0) context.onNote('retry: no prompt was set aside or dropped');
  }
  if (redo.codes.length + redo.ids.length === 0) return;
  const keys = new Set([...redo.ids, ...(redo.codes.length > 0 ? await keysWith(job, redo, argument) : [])]);
  const because = [...redo.codes, ...(redo.ids.length > 0 ? ['named'] : [])].join(', ');
  let records = 0;
  for (const name of names) {
    const marked = ledger.supersede(name, idsIn(name, keys), because);
    records += marked.records;
    onEvents(marked.events);
  }
  if (records === 0) context.onNote(`redo: no finished prompt is meant by ${because === 'named' ? 'these ids' : because}`);
}

/** An id without a partition is meant in each of them. */
function idsIn(partition: string, keys: ReadonlySet<string>): string[] {
  return [...keys].flatMap((key) => {
    const slash = key.indexOf('/');
    return slash < 0 || key.slice(0, slash) === partition ? [key.slice(slash + 1)] : [];
  });
}

async function keysWith({ run, ledger, context }: Job, redo: RedoTargets, argument: string): Promise<Set<string>> {
  const decoder = await openRunDecoder(run.folder);
  async function* records(): AsyncGenerator<unknown> {
    for (const { name } of run.partitions) yield* readLiveValues({ run, ledger }, name);
  }
  return await findIds(redo.codes, {
    records: records(),
    ...(decoder === undefined ? {} : { decoder }),
    ...checkFactsOf({ run, ledger }),
    ...(redo.maxLength === undefined ? {} : { maxLength: redo.maxLength }),
    ...(redo.benchmarks === undefined ? {} : { benchmarks: redo.benchmarks }),
    run: argument,
    signal: context.drain,
  });
}
