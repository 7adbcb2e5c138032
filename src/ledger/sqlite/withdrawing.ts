/**
 * Launches whose records may not be used: their live records become withdrawn, begun conversations with a turn of theirs begin
 * anew, and the prompts of both wait again in a new round. A record belongs to a launch if any of its turns was made there: the
 * launch of the last one stands in its row, others in `also_by`.
 *
 * A prompt that is leased is left alone: its worker knows nothing of this. It is settled when its lease ends: a record with
 * any part of a withdrawn launch is entered as withdrawn (`commits.ts`), and a lease that is given back loses such turns.
 * All functions run inside a transaction, and a second call changes nothing.
 */
import { bug } from '../../base/errors.ts';
import type { Happening } from '../../base/events.ts';
import type { Withdrawn, WithdrawnPart } from '../ledger.ts';
import type { Database } from './database.ts';
import { CounterChanges } from './partitions.ts';
import { number, type Row, text } from './row.ts';

const IS_WITHDRAWN = 'IN (SELECT launch FROM withdrawals)';

/** In memory, as all temporary tables here: a million numbers are 20 MB, and they live for one transaction. */
const SCRATCH = `
CREATE TEMP TABLE IF NOT EXISTS leaving (prompt INTEGER PRIMARY KEY, tokens INTEGER, turns INTEGER, truncated INTEGER);
CREATE TEMP TABLE IF NOT EXISTS restarting (prompt INTEGER PRIMARY KEY);`;

/** Before the transaction: the temporary tables, which a transaction that is rolled back would take away. */
export function prepareWithdrawal(database: Database): void {
  database.exec(SCRATCH);
}

export interface WithdrawalRequest {
  readonly launches: readonly number[];
  readonly because: string;
  readonly at: number;
}

export function withdrawLaunches(
  database: Database,
  { launches, because, at }: WithdrawalRequest,
): { readonly partitions: readonly WithdrawnPart[]; readonly happenings: readonly Happening[] } {
  for (const launch of launches) {
    const known = database.get('SELECT 1 AS found FROM launches WHERE id = :launch', { launch });
    if (known === undefined) throw bug(`Launch ${launch} was withdrawn and is not in the ledger.`, { launch });
    database.run('INSERT INTO withdrawals (launch, because, at) VALUES (:launch, :because, :at) ON CONFLICT DO NOTHING', {
      ...{ launch, because, at },
    });
  }
  const partitions = mergeParts(database, withdrawRecords(database), restartConversations(database));
  const named = launches.join(', ');
  return { partitions, happenings: partitions.map((part) => happeningOf(part, because, named)) };
}

export function happeningOf({ partition, ...counts }: WithdrawnPart, because: string, launches: string): Happening {
  return { kind: 'partition.withdrawn', subject: partition, facts: { ...counts, because, launches } };
}

export function withdrawnLaunches(database: Database): ReadonlySet<number> {
  return new Set(database.all('SELECT launch FROM withdrawals').map((row) => number(row, 'launch')));
}

/** Of prompts that wait: what is begun with a turn of a withdrawn launch begins anew. Called when leases end, too. */
export function restartConversations(database: Database): ReadonlyMap<number, Withdrawn> {
  if (database.get('SELECT 1 AS found FROM withdrawals LIMIT 1') === undefined) return new Map();
  database.run('DELETE FROM restarting');
  database.run(
    `INSERT INTO restarting SELECT ordinal FROM prompts WHERE state = 'waiting' AND answered > 0 AND ordinal IN (
       SELECT prompt FROM turns WHERE launch ${IS_WITHDRAWN}
       UNION SELECT prompt FROM also_by WHERE part = 'turns' AND launch ${IS_WITHDRAWN})`,
  );
  const rows = database.all(
    `SELECT partition, 0 AS records, count(*) AS turns, count(DISTINCT prompt) AS prompts, sum(tokens) AS tokens, sum(truncated) AS truncated
     FROM turns JOIN prompts ON ordinal = prompt WHERE prompt IN (SELECT prompt FROM restarting) GROUP BY partition`,
  );
  database.run('DELETE FROM turns WHERE prompt IN (SELECT prompt FROM restarting)');
  database.run(`DELETE FROM also_by WHERE part = 'turns' AND prompt IN (SELECT prompt FROM restarting)`);
  database.run('UPDATE prompts SET answered = 0, round = round + 1 WHERE ordinal IN (SELECT prompt FROM restarting)');
  const changes = new CounterChanges(database);
  for (const row of rows) {
    const { turns, tokens } = toWithdrawn(row);
    changes.add(number(row, 'partition'), { spentTokens: -tokens, answers: -turns, truncated: -number(row, 'truncated') });
  }
  changes.write();
  return new Map(rows.map((row) => [number(row, 'partition'), toWithdrawn(row)]));
}

/** A record that is to be replaced is withdrawn like any other; its prompt then waits, or is worked on, for a first record. */
function withdrawRecords(database: Database): ReadonlyMap<number, Withdrawn> {
  database.run('DELETE FROM leaving');
  database.run(
    `INSERT INTO leaving SELECT prompt, tokens, turns, truncated FROM records WHERE state = 'live' AND (launch ${IS_WITHDRAWN}
       OR prompt IN (SELECT prompt FROM also_by WHERE part = 'record' AND launch ${IS_WITHDRAWN}))`,
  );
  const rows = database.all(
    `SELECT partition, count(*) AS records, sum(leaving.turns) AS turns, count(*) AS prompts, sum(tokens) AS tokens,
       sum(truncated) AS truncated, sum(state = 'done') AS done, sum(replaces) AS redoing
     FROM leaving JOIN prompts ON ordinal = prompt GROUP BY partition`,
  );
  const left = '(SELECT prompt FROM leaving)';
  database.run(`UPDATE records SET state = 'withdrawn' WHERE state = 'live' AND prompt IN ${left}`);
  database.run(`DELETE FROM also_by WHERE part = 'record' AND prompt IN ${left}`);
  database.run(`UPDATE prompts SET state = 'waiting', round = round + 1 WHERE state = 'done' AND ordinal IN ${left}`);
  database.run(`UPDATE prompts SET replaces = 0 WHERE replaces = 1 AND ordinal IN ${left}`);
  const changes = new CounterChanges(database);
  for (const row of rows) {
    const { turns, tokens } = toWithdrawn(row);
    const [done, redoing] = [number(row, 'done'), number(row, 'redoing')];
    changes.add(number(row, 'partition'), {
      ...{ done: -done, waiting: done, redoing: -redoing },
      ...{ spentTokens: -tokens, answers: -turns, truncated: -number(row, 'truncated') },
    });
  }
  changes.write();
  return new Map(rows.map((row) => [number(row, 'partition'), toWithdrawn(row)]));
}

function toWithdrawn(row: Row): Withdrawn {
  const [records, turns] = [number(row, 'records'), number(row, 'turns')];
  return { records, turns, prompts: number(row, 'prompts'), tokens: number(row, 'tokens') };
}

/** In the order of the partitions; those that lose nothing are left out. */
function mergeParts(database: Database, ...all: readonly ReadonlyMap<number, Withdrawn>[]): readonly WithdrawnPart[] {
  return database.all('SELECT ordinal, name FROM partitions ORDER BY ordinal').flatMap((row) => {
    const found = all.map((parts) => parts.get(number(row, 'ordinal'))).filter((part) => part !== undefined);
    return found.length === 0 ? [] : [{ partition: text(row, 'name'), ...addUp(found) }];
  });
}

export function addUp(parts: readonly Withdrawn[]): Withdrawn {
  const sum = { records: 0, turns: 0, prompts: 0, tokens: 0 };
  for (const { records, turns, prompts, tokens } of parts) {
    sum.records += records;
    sum.turns += turns;
    sum.prompts += prompts;
    sum.tokens += tokens;
  }
  return sum;
}
