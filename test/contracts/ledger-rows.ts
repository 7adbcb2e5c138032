/** Rows for ledger tests: complete, dull, and changed where a test cares. Prompts are `p0`, `p1` … of partition B1. */
import type {
  AttemptRow,
  Commit,
  CommittedRecord,
  EnrolBatch,
  EnrolledPrompt,
  FinishedTurn,
  LaunchRow,
  Lease,
} from '../../src/ledger/ledger.ts';

export const launch: LaunchRow = {
  server: 's1',
  engine: 'embedded',
  engineVersion: '1',
  kvCacheDtype: 'f16',
  weights: 'Q4_1',
  policyHash: '',
  detail: '{}',
  startedAt: 1,
};

export function prompt(id: string): EnrolledPrompt {
  return { id, offset: 0, bytes: 100, turns: 2 };
}

export function enrolled(n: number): EnrolledPrompt[] {
  return Array.from({ length: n }, (_, index) => prompt(`p${index}`));
}

export function batch(changed: Partial<EnrolBatch> = {}): EnrolBatch {
  return {
    ...{ partition: 'B1', prompts: [], duplicates: 0, rejected: 0, sourceRows: 0, promptsBytes: 0, rejectedBytes: 0 },
    enrolment: 'open',
    pin: { path: '', bytes: 0, mtimeMs: 0, sha256: '', hashedBytes: 0 },
    happenings: [],
    ...changed,
  };
}

export function commitOf(changed: Partial<Commit>): Commit {
  return { turns: [], records: [], asides: [], drops: [], attempts: [], happenings: [], ...changed };
}

export function turnOf(lease: Lease | undefined, turn: number, changed: Partial<FinishedTurn> = {}): FinishedTurn {
  return { ...keyOf(lease), turn, body: `"turn ${turn}"`, tokens: 10, truncated: false, launch: 1, ...changed };
}

export function recordOf(lease: Lease | undefined, changed: Partial<CommittedRecord> = {}): CommittedRecord {
  const place = { shard: 0, offset: 0, bytes: 100, sha256: 'ab' };
  return { ...keyOf(lease), ...place, tokens: 20, turns: 1, truncated: 0, launch: 1, ...changed };
}

export function attempt(lease: Lease | undefined, changed: Partial<AttemptRow> = {}): AttemptRow {
  const { partition, id } = keyOf(lease);
  const times = { startedAt: 1, endedAt: 2.5 };
  return { partition, id, turn: 0, launch: 1, ...times, outcome: 'completed', status: 200, because: '', tokens: 10, ...changed };
}

function keyOf(lease: Lease | undefined): { partition: string; id: string; fence: number } {
  if (lease === undefined) throw new Error('the test leased nothing');
  return { partition: lease.partition, id: lease.id, fence: lease.fence };
}
