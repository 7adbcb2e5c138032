/** Launches: what each record was made by, so that withdrawing the records of a forbidden configuration is a query. */
import type { LaunchRow, RecordedLaunch } from '../ledger.ts';
import type { Database } from './database.ts';
import { number, type Row, text } from './row.ts';

/** Inside a transaction. The id that turns, records and attempts refer to. */
export function insertLaunch(database: Database, launch: LaunchRow): number {
  const { server, engine, engineVersion, kvCacheDtype, weights, policyHash, detail } = launch;
  return database.run(
    `INSERT INTO launches (server, engine, engine_version, kv_cache_dtype, weights, policy_hash, detail, started_at)
     VALUES (:server, :engine, :engineVersion, :kvCacheDtype, :weights, :policyHash, :detail, :startedAt)`,
    { server, engine, engineVersion, kvCacheDtype, weights, policyHash, detail, startedAt: Math.round(launch.startedAt) },
  ).lastId;
}

/** In the order in which they were recorded. */
export function readLaunches(database: Database): readonly RecordedLaunch[] {
  const rows = database.all(
    `SELECT launches.*, withdrawals.launch IS NOT NULL AS withdrawn
     FROM launches LEFT JOIN withdrawals ON withdrawals.launch = launches.id ORDER BY id`,
  );
  return rows.map(toLaunch);
}

function toLaunch(row: Row): RecordedLaunch {
  return {
    id: number(row, 'id'),
    server: text(row, 'server'),
    engine: text(row, 'engine'),
    engineVersion: text(row, 'engine_version'),
    kvCacheDtype: text(row, 'kv_cache_dtype'),
    weights: text(row, 'weights'),
    policyHash: text(row, 'policy_hash'),
    detail: text(row, 'detail'),
    startedAt: number(row, 'started_at'),
    isWithdrawn: number(row, 'withdrawn') === 1,
  };
}
