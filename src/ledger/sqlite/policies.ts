/** Rules that were added to a run that had begun; those of the run file are in the run file. */
import type { PolicyRule } from '../../spec/run.ts';
import type { AddedRule } from '../ledger.ts';
import type { Database } from './database.ts';
import { number, text } from './row.ts';

/** Inside a transaction. False: the same rule, with the same reason, is there already. */
export function insertRule(database: Database, rule: PolicyRule, at: number): boolean {
  const { changes } = database.run('INSERT INTO policies (rule, at) VALUES (:rule, :at) ON CONFLICT DO NOTHING', {
    rule: JSON.stringify(rule),
    at,
  });
  return changes === 1;
}

/** In the order in which they were added. */
export function readRules(database: Database): readonly AddedRule[] {
  const rows = database.all('SELECT rule, at FROM policies ORDER BY n');
  return rows.map((row) => ({ rule: JSON.parse(text(row, 'rule')) as PolicyRule, at: number(row, 'at') })); // written only above
}
