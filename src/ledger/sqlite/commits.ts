/**
 * What a commit does: attempts are noted, turns kept, records entered, prompts set aside or dropped, in this order, so that one
 * commit may finish a turn and then set its prompt aside (an answer that was paid for and is not kept).
 *
 * Tokens: a finished turn spends its tokens; a record spends what its turns have not spent yet; setting a prompt aside
 * or dropping it takes the tokens of its turns out of `spent`, and a record takes out those of the record it supersedes. `generated` only ever grows: by turns, by records, and by the attempts
 * whose answer is not kept (every outcome but `completed`, whose tokens come with the turn or the record).
 * Runs inside a transaction and throws `bug` on what the caller should have known; the transaction is then
 * rolled back, so nothing of the commit is there.
 */
import { bug } from '../../base/errors.ts';
import type { Happening } from '../../base/events.ts';
import type { AttemptRow, Commit, CommittedRecord, Drop, FinishedTurn, PromptKey, RecordCounts, SetAside } from '../ledger.ts';
import type { Database } from './database.ts';
import { Latecomers } from './latecomers.ts';
import { staleFence } from './leases.ts';
import { type CounterChange, CounterChanges } from './partitions.ts';
import { number } from './row.ts';
import { ShardChanges } from './shards.ts';
import { supersedeRecord } from './superseding.ts';

/** What came too late is told: a record of a launch that was withdrawn meanwhile is entered as withdrawn. */
export function applyCommit(database: Database, commit: Commit): readonly Happening[] {
  const changes = new CounterChanges(database);
  const shards = new ShardChanges(database);
  const late = new Latecomers(database);
  for (const attempt of commit.attempts) noteAttempt(database, changes, attempt);
  countOutcomes(database, commit.attempts);
  for (const turn of commit.turns) finishTurn(database, changes, turn);
  for (const record of commit.records) enterRecord(database, { changes, shards, late }, record);
  for (const aside of commit.asides) setPromptAside(database, changes, aside);
  for (const drop of commit.drops) dropPrompt(database, changes, drop);
  changes.write();
  shards.write();
  return late.happenings();
}

interface LeasedPrompt {
  readonly ordinal: number;
  readonly partition: number;
  readonly answered: number;
  /** Its live record stays until a new one is entered. */
  readonly replaces: boolean;
}

/** The prompt, if it is leased with exactly this fence. */
function leasedPrompt(database: Database, partition: number, key: PromptKey & { readonly fence: number }): LeasedPrompt {
  const row = database.get(
    `SELECT ordinal, answered, replaces FROM prompts WHERE partition = :partition AND id = :id AND state = 'leased' AND fence = :fence`,
    { partition, id: key.id, fence: key.fence },
  );
  if (row === undefined) throw staleFence(key);
  const replaces = number(row, 'replaces') === 1;
  return { ordinal: number(row, 'ordinal'), partition, answered: number(row, 'answered'), replaces };
}

function noteAttempt(database: Database, changes: CounterChanges, attempt: AttemptRow): void {
  const partition = changes.ordinalOf(attempt.partition);
  const { turn, launch, outcome, status, because, tokens, id } = attempt;
  const { changes: noted } = database.run(
    `INSERT INTO attempts (prompt, turn, launch, started_at, ended_at, outcome, status, because, tokens)
     SELECT ordinal, :turn, :launch, :startedAt, :endedAt, :outcome, :status, :because, :tokens
     FROM prompts WHERE partition = :partition AND id = :id`,
    {
      ...{ turn, launch, outcome, status, because, tokens, partition, id },
      startedAt: Math.round(attempt.startedAt),
      endedAt: Math.round(attempt.endedAt),
    },
  );
  if (noted !== 1) throw bug(`An attempt names prompt ${id}, which partition ${attempt.partition} does not have.`, { id });
  if (outcome !== 'completed') changes.add(partition, { generatedTokens: tokens });
}

/** The totals beside the rows, so that `outcomeCounts` reads one row per outcome. */
function countOutcomes(database: Database, attempts: readonly AttemptRow[]): void {
  const counts = new Map<string, number>();
  for (const { outcome } of attempts) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  for (const [outcome, added] of counts) {
    database.run(
      'INSERT INTO outcomes (outcome, attempts) VALUES (:outcome, :added) ON CONFLICT DO UPDATE SET attempts = attempts + :added',
      { outcome, added },
    );
  }
}

function finishTurn(database: Database, changes: CounterChanges, finished: FinishedTurn): void {
  const prompt = leasedPrompt(database, changes.ordinalOf(finished.partition), finished);
  const { turn, body, tokens, launch } = finished;
  if (turn !== prompt.answered) {
    throw bug(`Turn ${turn} of prompt ${finished.id} was finished where turn ${prompt.answered} is next.`, {
      id: finished.id,
      turn,
      next: prompt.answered,
    });
  }
  const truncated = finished.truncated ? 1 : 0;
  database.run(
    'INSERT INTO turns (prompt, turn, body, tokens, truncated, launch) VALUES (:prompt, :turn, :body, :tokens, :truncated, :launch)',
    { prompt: prompt.ordinal, turn, body, tokens, truncated, launch },
  );
  noteAlsoBy(database, prompt, 'turns', finished.alsoBy ?? []);
  database.run('UPDATE prompts SET answered = answered + 1 WHERE ordinal = :ordinal', { ordinal: prompt.ordinal });
  changes.add(prompt.partition, { spentTokens: tokens, generatedTokens: tokens, answers: 1, truncated });
}

function enterRecord(
  database: Database,
  { changes, shards, late }: { readonly changes: CounterChanges; readonly shards: ShardChanges; readonly late: Latecomers },
  record: CommittedRecord,
): void {
  const prompt = leasedPrompt(database, changes.ordinalOf(record.partition), record);
  const kept = takeTurns(database, prompt);
  const fresh = {
    tokens: record.tokens - kept.tokens,
    turns: record.turns - kept.turns,
    truncated: record.truncated - kept.truncated,
  };
  if (Math.min(fresh.tokens, fresh.turns, fresh.truncated) < 0) {
    throw bug(`The record of prompt ${record.id} holds less than the turns already finished.`, { id: record.id, ...fresh });
  }
  shards.append(prompt.partition, record);
  const { shard, offset, bytes, sha256, tokens, turns, truncated, launch } = record;
  const others = [...kept.launches, ...(record.alsoBy ?? [])].filter((other) => other !== launch);
  const isLate = late.isWithdrawn([launch, ...others]);
  const old = prompt.replaces && !isLate ? supersedeRecord(database, prompt.ordinal) : undefined;
  database.run(
    `INSERT INTO records (partition, shard, offset, bytes, sha256, prompt, state, tokens, turns, truncated, launch)
     VALUES (:partition, :shard, :offset, :bytes, :sha256, :prompt, :state, :tokens, :turns, :truncated, :launch)`,
    {
      ...{ partition: prompt.partition, prompt: prompt.ordinal, state: isLate ? 'withdrawn' : 'live' },
      ...{ shard, offset, bytes, sha256, tokens, turns, truncated, launch },
    },
  );
  if (isLate) {
    changes.add(prompt.partition, { ...minus(kept), leased: -1, waiting: 1, generatedTokens: fresh.tokens });
    late.askAgain(prompt.ordinal, record);
    return;
  }
  noteAlsoBy(database, prompt, 'record', others);
  endLease(database, prompt, 'done');
  changes.add(prompt.partition, {
    ...{ leased: -1, done: 1, redoing: old === undefined ? 0 : -1 },
    ...{ answers: fresh.turns - (old?.turns ?? 0), truncated: fresh.truncated - (old?.truncated ?? 0) },
    ...{ spentTokens: fresh.tokens - (old?.tokens ?? 0), generatedTokens: fresh.tokens },
  });
}

function endLease(database: Database, { ordinal }: LeasedPrompt, state: 'done' | 'aside' | 'dropped'): void {
  database.run('UPDATE prompts SET state = :state, answered = 0, replaces = 0 WHERE ordinal = :ordinal', { ordinal, state });
}

/** The prompt is done with the record it had: a new attempt that came to nothing takes nothing away. */
function keepOldRecord(database: Database, changes: CounterChanges, prompt: LeasedPrompt): void {
  endLease(database, prompt, 'done');
  changes.add(prompt.partition, { leased: -1, done: 1, redoing: -1 });
}

function setPromptAside(database: Database, changes: CounterChanges, aside: SetAside): void {
  const prompt = leasedPrompt(database, changes.ordinalOf(aside.partition), aside);
  loseTurns(database, changes, prompt);
  if (prompt.replaces) {
    keepOldRecord(database, changes, prompt);
    return;
  }
  const { reason, because } = aside;
  database.run('INSERT INTO asides (prompt, reason, because) VALUES (:prompt, :reason, :because)', {
    ...{ prompt: prompt.ordinal, reason, because },
  });
  endLease(database, prompt, 'aside');
  changes.add(prompt.partition, { leased: -1, aside: 1 });
}

function dropPrompt(database: Database, changes: CounterChanges, drop: Drop): void {
  const prompt = leasedPrompt(database, changes.ordinalOf(drop.partition), drop);
  loseTurns(database, changes, prompt);
  if (prompt.replaces) {
    keepOldRecord(database, changes, prompt);
    return;
  }
  endLease(database, prompt, 'dropped');
  changes.add(prompt.partition, { leased: -1, dropped: 1 });
}

/** Paid for and not kept: out of `spent`, still in `generated`. */
function loseTurns(database: Database, changes: CounterChanges, prompt: LeasedPrompt): void {
  changes.add(prompt.partition, minus(takeTurns(database, prompt)));
}

function minus({ tokens, turns, truncated }: RecordCounts): CounterChange {
  return { spentTokens: -tokens, answers: -turns, truncated: -truncated };
}

function noteAlsoBy(database: Database, prompt: LeasedPrompt, part: 'turns' | 'record', launches: readonly number[]): void {
  for (const launch of launches) {
    database.run('INSERT INTO also_by (prompt, launch, part) VALUES (:prompt, :launch, :part) ON CONFLICT DO NOTHING', {
      ...{ prompt: prompt.ordinal, launch, part },
    });
  }
}

/** Takes the finished turns of a conversation out of the ledger; what they had counted is the answer. */
function takeTurns(database: Database, { ordinal, answered }: LeasedPrompt): RecordCounts & { readonly launches: Set<number> } {
  const taken = { tokens: 0, turns: 0, truncated: 0, launches: new Set<number>() };
  if (answered === 0) return taken;
  const key = { prompt: ordinal };
  for (const row of database.all('DELETE FROM turns WHERE prompt = :prompt RETURNING tokens, truncated, launch', key)) {
    taken.tokens += number(row, 'tokens');
    taken.turns += 1;
    taken.truncated += number(row, 'truncated');
    taken.launches.add(number(row, 'launch'));
  }
  for (const row of database.all(`DELETE FROM also_by WHERE prompt = :prompt AND part = 'turns' RETURNING launch`, key))
    taken.launches.add(number(row, 'launch'));
  return taken;
}
