/** `Ledger` over one SQLite file: which calls are transactions, and the time of their events. The SQL is in the files of each concern. */
import type { AsideReason } from '../../base/aside-reason.ts';
import type { Event, Facts, Happening } from '../../base/events.ts';
import { describeRule } from '../../spec/policy.ts';
import type { PolicyRule } from '../../spec/run.ts';
import type {
  AddedRule,
  AsideRow,
  Commit,
  EnrolBatch,
  LaunchRow,
  Lease,
  Ledger,
  LiveRecord,
  PartitionCounters,
  PartitionSettings,
  PromptKey,
  RecordedLaunch,
  ShardRow,
  Withdrawal,
} from '../ledger.ts';
import { applyCommit } from './commits.ts';
import type { Database } from './database.ts';
import { readAsideCounts, readOutcomeCounts, readSetAsides } from './endings.ts';
import { enrolBatch, findKnownIds } from './enrolment.ts';
import { appendEvents, readEvents } from './events.ts';
import { insertLaunch, readLaunches } from './launches.ts';
import { giveLeasesBack, leasePrompts, releaseAllLeases } from './leases.ts';
import { readIdentity, writeIdentity } from './meta.ts';
import { declarePartitions, readPartitions, reopenSource } from './partitions.ts';
import { insertRule, readRules } from './policies.ts';
import { readLiveRecords, readShards, sealShardRow } from './shards.ts';
import { requeuePrompts, supersedePrompts } from './superseding.ts';
import { addUp, prepareWithdrawal, withdrawLaunches } from './withdrawing.ts';

/** The default of `events(after)`: a page that a terminal or a browser can take at once. */
const EVENTS_PAGE = 1000;

export class SqliteLedger implements Ledger {
  readonly #database: Database;
  readonly #clock: { now(): number };

  constructor(database: Database, clock: { now(): number }) {
    this.#database = database;
    this.#clock = clock;
  }

  identity(): Facts {
    return readIdentity(this.#database);
  }

  setIdentity(facts: Facts, happenings: readonly Happening[] = []): readonly Event[] {
    return this.#telling(happenings, () => writeIdentity(this.#database, facts));
  }

  declarePartitions(settings: readonly PartitionSettings[], exactly = false): void {
    this.#database.transaction(() => declarePartitions(this.#database, settings, exactly));
  }

  reopenSource(partition: string): void {
    this.#database.transaction(() => reopenSource(this.#database, partition));
  }

  partitions(): readonly PartitionCounters[] {
    return readPartitions(this.#database);
  }

  knownIds(partition: string, ids: readonly string[]): ReadonlySet<string> {
    return findKnownIds(this.#database, partition, ids);
  }

  enrol(batch: EnrolBatch): readonly Event[] {
    return this.#telling(batch.happenings, () => enrolBatch(this.#database, batch));
  }

  lease(partition: string, n: number, onlyUnfinished = false): readonly Lease[] {
    if (n <= 0) return [];
    return this.#database.transaction(() => leasePrompts(this.#database, { partition, n, onlyUnfinished }));
  }

  unlease(keys: readonly (PromptKey & { readonly fence: number })[]): void {
    prepareWithdrawal(this.#database);
    this.#database.transaction(() => giveLeasesBack(this.#database, keys));
  }

  releaseLeases(): number {
    prepareWithdrawal(this.#database);
    return this.#database.transaction(() => releaseAllLeases(this.#database));
  }

  supersede(partition: string, ids: readonly string[], because: string): { records: number; events: readonly Event[] } {
    return this.#database.transaction(() => {
      const { records, happenings } = supersedePrompts(this.#database, { partition, ids, because });
      return { records, events: this.#tell(happenings) };
    });
  }

  requeue(partition: string): { aside: number; dropped: number; events: readonly Event[] } {
    return this.#database.transaction(() => {
      const { aside, dropped, happenings } = requeuePrompts(this.#database, partition);
      return { aside, dropped, events: this.#tell(happenings) };
    });
  }

  withdraw(launches: readonly number[], because: string): Withdrawal {
    return this.#withdraw(launches, because, () => []);
  }

  addRule(rule: PolicyRule, broken: readonly number[]): Withdrawal {
    return this.#withdraw(broken, rule.because, (at) => {
      const facts = { rule: describeRule(rule), because: rule.because, by: rule.by };
      return insertRule(this.#database, rule, at) ? [{ kind: 'policy.added', subject: facts.rule, facts }] : [];
    });
  }

  addedRules(): readonly AddedRule[] {
    return readRules(this.#database);
  }

  commit(commit: Commit): readonly Event[] {
    return this.#database.transaction(() => {
      const late = applyCommit(this.#database, commit);
      return this.#tell([...commit.happenings, ...late]);
    });
  }

  recordLaunch(launch: LaunchRow): number {
    return this.#database.transaction(() => insertLaunch(this.#database, launch));
  }

  launches(): readonly RecordedLaunch[] {
    return readLaunches(this.#database);
  }

  emit(happenings: readonly Happening[]): readonly Event[] {
    return this.#telling(happenings, () => {});
  }

  events(after: number, most = EVENTS_PAGE): readonly Event[] {
    return readEvents(this.#database, after, most);
  }

  shards(): readonly ShardRow[] {
    return readShards(this.#database);
  }

  sealShard(partition: string, number: number, sha256: string, happening: Happening): readonly Event[] {
    return this.#telling([happening], () => sealShardRow(this.#database, { partition, number, sha256 }));
  }

  liveRecords(partition: string): Iterable<LiveRecord> {
    return { [Symbol.iterator]: () => readLiveRecords(this.#database, partition) };
  }

  setAsides(partition: string, most = -1): readonly AsideRow[] {
    return readSetAsides(this.#database, partition, most); // −1 is SQLite's "no limit"
  }

  asideCounts(partition: string): Readonly<Partial<Record<AsideReason, number>>> {
    return readAsideCounts(this.#database, partition);
  }

  outcomeCounts(): Readonly<Record<string, number>> {
    return readOutcomeCounts(this.#database);
  }

  close(): void {
    this.#database.close();
  }

  #withdraw(launches: readonly number[], because: string, before: (at: number) => readonly Happening[]): Withdrawal {
    prepareWithdrawal(this.#database);
    return this.#database.transaction(() => {
      const at = Math.round(this.#clock.now());
      const added = before(at);
      const { partitions, happenings } = withdrawLaunches(this.#database, { launches, because, at });
      return { ...addUp(partitions), partitions, events: this.#tell([...added, ...happenings]) };
    });
  }

  /** The work and the events that tell of it, in one transaction. */
  #telling(happenings: readonly Happening[], work: () => void): readonly Event[] {
    return this.#database.transaction(() => {
      work();
      return this.#tell(happenings);
    });
  }

  /** Inside a transaction. */
  #tell(happenings: readonly Happening[]): readonly Event[] {
    return appendEvents(this.#database, Math.round(this.#clock.now()), happenings);
  }
}
