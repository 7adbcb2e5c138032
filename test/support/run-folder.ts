/** A run folder as it lies on disk, read without Aerie's own code: shards line by line, the ledger by plain queries. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import type { TrainingRecord } from '../../src/shard/record.ts';

/** Every whole line of every shard of a partition, live or not. */
export function readShardLines(runFolder: string, partition: string): TrainingRecord[] {
  const folder = join(runFolder, 'records', partition);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .sort()
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'))
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as TrainingRecord);
}

type Row = Readonly<Record<string, unknown>>;

export function query(runFolder: string, sql: string): Row[] {
  const database = new DatabaseSync(join(runFolder, 'ledger.sqlite'), { readOnly: true, timeout: 5_000 });
  try {
    return database.prepare(sql).all() as Row[];
  } finally {
    database.close();
  }
}

/** All rows of all tables as text, so that two looks can be compared for "nothing was changed". */
export function dumpLedger(runFolder: string): string {
  const tables = query(
    runFolder,
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
  );
  return tables
    .map(({ name }) => `${name} ${JSON.stringify(query(runFolder, `SELECT * FROM ${name} ORDER BY 1, 2`))}`)
    .join('\n');
}

/** Ids in the prompts table by state. */
export function promptStates(runFolder: string): Record<string, number> {
  const rows = query(runFolder, 'SELECT state, count(*) AS prompts FROM prompts GROUP BY state');
  return Object.fromEntries(rows.map(({ state, prompts }) => [String(state), Number(prompts)]));
}

/** Every file below a folder. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? filesBelow(join(folder, entry.name)) : [join(folder, entry.name)],
  );
}
