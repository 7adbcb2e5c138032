/** Launches: what each record was made by, so that withdrawing the records of a forbidden configuration is a query. */
import type { LaunchRow } from '../ledger.ts';
import type { Database } from './database.ts';

/** Inside a transaction. The id that turns, records and attempts refer to. */
export function insertLaunch(database: Database, launch: LaunchRow): number {
  const { server, engine, engineVersion, kvCacheDtype, weights, policyHash, detail } = launch;
  return database.run(
    `INSERT INTO launches (server, engine, engine_version, kv_cache_dtype, weights, policy_hash, detail, started_at)
     VALUES (:server, :engine, :engineVersion, :kvCacheDtype, :weights, :policyHash, :detail, :startedAt)`,
    { server, engine, engineVersion, kvCacheDtype, weights, policyHash, detail, startedAt: Math.round(launch.startedAt) },
  ).lastId;
}
