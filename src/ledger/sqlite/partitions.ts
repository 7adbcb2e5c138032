/**
 * The row of each partition: settings, source, counters. `CounterChanges` gathers what one transaction does to the
 * counters and writes it once per partition at the end of that transaction.
 */
import { bug } from '../../base/errors.ts';
import type { PartPin } from '../../dataset/source-pin.ts';
import type { PartitionCounters, PartitionSettings } from '../ledger.ts';
import type { Database } from './database.ts';
import { number, type Row, text } from './row.ts';

/**
 * Adds what is new; raises what is there, where 0 (none) is higher than every number. A limit that rises reopens a source it
 * had closed. `exactly`: what is there becomes what is given, lower or not.
 */
export function declarePartitions(database: Database, settings: readonly PartitionSettings[], exactly = false): void {
  for (const { name, budget, limit } of settings) {
    database.run(
      `INSERT INTO partitions (ordinal, name, budget, prompt_limit)
       VALUES ((SELECT coalesce(max(ordinal) + 1, 0) FROM partitions), :name, :budget, :limit)
       ON CONFLICT (name) DO UPDATE SET
         budget = CASE WHEN :exactly = 1 THEN :budget WHEN :budget = 0 OR budget = 0 THEN 0 ELSE max(budget, :budget) END,
         prompt_limit = CASE WHEN :exactly = 1 THEN :limit WHEN :limit = 0 OR prompt_limit = 0 THEN 0 ELSE max(prompt_limit, :limit) END,
         enrolment = CASE WHEN enrolment = 'limited' AND (:limit = 0 OR :limit > enrolled) THEN 'open' ELSE enrolment END`,
      { name, budget, limit, exactly: exactly ? 1 : 0 },
    );
  }
}

/** The source is read again from its first row; what is enrolled stays, and its rows are duplicates now. */
export function reopenSource(database: Database, name: string): void {
  database.run(
    `UPDATE partitions SET enrolment = 'open', source_rows = 0, pin_path = '', pin_bytes = 0, pin_mtime_ms = 0, pin_sha256 = '',
       pin_hashed_bytes = 0, rejected = iif(enrolled = 0, 0, rejected), rejected_bytes = iif(enrolled = 0, 0, rejected_bytes)
     WHERE ordinal = :partition`,
    { partition: partitionOrdinal(database, name) },
  );
}

export function readPartitions(database: Database): readonly PartitionCounters[] {
  return database.all('SELECT * FROM partitions ORDER BY ordinal').map(toPartitionCounters);
}

/** The number that stands for a partition in every other table. */
export function partitionOrdinal(database: Database, name: string): number {
  const row = database.get('SELECT ordinal FROM partitions WHERE name = :name', { name });
  if (row === undefined) throw bug(`The ledger knows no partition ${name}.`, { partition: name });
  return number(row, 'ordinal');
}

const COUNTERS = [
  ...(['waiting', 'leased', 'done', 'aside', 'dropped', 'redoing'] as const),
  ...(['spentTokens', 'generatedTokens', 'answers', 'truncated'] as const),
] as const;
type Counter = (typeof COUNTERS)[number];
export type CounterChange = Partial<Readonly<Record<Counter, number>>>;

export class CounterChanges {
  readonly #database: Database;
  readonly #ordinals = new Map<string, number>();
  readonly #changes = new Map<number, Record<Counter, number>>();

  constructor(database: Database) {
    this.#database = database;
  }

  /** As `partitionOrdinal`, asked once per transaction. */
  ordinalOf(name: string): number {
    const known = this.#ordinals.get(name);
    if (known !== undefined) return known;
    const ordinal = partitionOrdinal(this.#database, name);
    this.#ordinals.set(name, ordinal);
    return ordinal;
  }

  add(partition: number, change: CounterChange): void {
    const sum = this.#changes.get(partition) ?? noChange();
    for (const counter of COUNTERS) sum[counter] += change[counter] ?? 0;
    this.#changes.set(partition, sum);
  }

  write(): void {
    for (const [ordinal, change] of this.#changes) {
      this.#database.run(
        `UPDATE partitions SET
           waiting = waiting + :waiting, leased = leased + :leased, done = done + :done, aside = aside + :aside,
           dropped = dropped + :dropped, redoing = redoing + :redoing,
           spent_tokens = spent_tokens + :spentTokens, generated_tokens = generated_tokens + :generatedTokens,
           answers = answers + :answers, truncated = truncated + :truncated
         WHERE ordinal = :ordinal`,
        { ordinal, ...change },
      );
    }
    this.#changes.clear();
  }
}

function noChange(): Record<Counter, number> {
  return {
    waiting: 0,
    leased: 0,
    done: 0,
    aside: 0,
    dropped: 0,
    redoing: 0,
    spentTokens: 0,
    generatedTokens: 0,
    answers: 0,
    truncated: 0,
  };
}

function toPartitionCounters(row: Row): PartitionCounters {
  return {
    name: text(row, 'name'),
    budget: number(row, 'budget'),
    limit: number(row, 'prompt_limit'),
    ordinal: number(row, 'ordinal'),
    enrolment: toEnrolment(text(row, 'enrolment')),
    sourceRows: number(row, 'source_rows'),
    duplicates: number(row, 'duplicates'),
    rejected: number(row, 'rejected'),
    promptsBytes: number(row, 'prompts_bytes'),
    rejectedBytes: number(row, 'rejected_bytes'),
    enrolled: number(row, 'enrolled'),
    waiting: number(row, 'waiting'),
    leased: number(row, 'leased'),
    done: number(row, 'done'),
    aside: number(row, 'aside'),
    dropped: number(row, 'dropped'),
    redoing: number(row, 'redoing'),
    spentTokens: number(row, 'spent_tokens'),
    generatedTokens: number(row, 'generated_tokens'),
    answers: number(row, 'answers'),
    truncated: number(row, 'truncated'),
    pin: {
      path: text(row, 'pin_path'),
      bytes: number(row, 'pin_bytes'),
      mtimeMs: number(row, 'pin_mtime_ms'),
      sha256: text(row, 'pin_sha256'),
      hashedBytes: number(row, 'pin_hashed_bytes'),
      ...pinnedFiles(text(row, 'pin_files')),
    },
  };
}

/** The table's CHECK admits nothing else. */
function toEnrolment(value: string): PartitionCounters['enrolment'] {
  return value === 'open' || value === 'limited' ? value : 'complete';
}

function pinnedFiles(written: string): { readonly files?: readonly PartPin[] } {
  return written === '' ? {} : { files: JSON.parse(written) as readonly PartPin[] };
}
