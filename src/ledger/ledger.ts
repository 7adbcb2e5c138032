/**
 * The durable account of a run: what was enrolled, leased, answered, finished and spent. An interface, so that a
 * ledger for many machines can come later; `ledger/sqlite/` is the one there is.
 *
 * A prompt is  waiting → leased → done | aside | dropped;  a restart turns leased back into waiting (`releaseLeases`), `supersede`
 * turns done and `requeue` turns aside and dropped into waiting, and so does `withdraw` with what is done. `dropped`: answered, and not wanted as it was. A record is live | superseded | withdrawn: only the ledger says which
 * bytes are live. Every call is one transaction, durable when it returns. A call that throws has changed nothing; what
 * the caller should have known (an old fence, a turn out of order, an unknown partition or launch) is thrown as `bug`.
 * After `disk.failed` it is unknown whether the last transaction is on disk: leave the shards as they are and open again. Calls are synchronous on purpose: a group
 * commit stalls the loop for 4 ms at the 99th percentile, a worker thread would cost more than it saves.
 */
import type { AsideReason } from '../base/aside-reason.ts';
import type { Event, Facts, Happening } from '../base/events.ts';
import type { SourcePin } from '../dataset/source-pin.ts';
import type { PolicyRule } from '../spec/run.ts';

export interface PartitionSettings {
  readonly name: string;
  /** Generated tokens this partition may spend; 0 = no budget. */
  readonly budget: number;
  /** Most prompts to enrol; 0 = all. */
  readonly limit: number;
}

/** Counters are kept by the transactions that change them, never by counting rows: a resume reads one row per partition. */
export interface PartitionCounters extends PartitionSettings {
  readonly ordinal: number;
  readonly enrolment: 'open' | 'limited' | 'complete';
  /** Source rows (lines, blank ones included) consumed so far. */
  readonly sourceRows: number;
  readonly duplicates: number;
  readonly rejected: number;
  readonly promptsBytes: number;
  readonly rejectedBytes: number;
  readonly enrolled: number;
  readonly waiting: number;
  readonly leased: number;
  readonly done: number;
  readonly aside: number;
  readonly dropped: number;
  /** Of waiting and leased: prompts whose record is live until a new one takes its place. Live records = done + redoing. */
  readonly redoing: number;
  /** Output ids of live records and of finished turns of unfinished conversations: what the budget counts. */
  readonly spentTokens: number;
  /** All generated tokens Aerie knows of, wasted ones too. */
  readonly generatedTokens: number;
  /** Answered turns in live records and unfinished conversations, and how many of them were cut at the cap. */
  readonly answers: number;
  readonly truncated: number;
  readonly pin: SourcePin;
}

export interface EnrolledPrompt {
  readonly id: string;
  readonly offset: number;
  readonly bytes: number;
  readonly turns: number;
}

/** A batch read from a source; all of it or none of it. */
export interface EnrolBatch {
  readonly partition: string;
  /** Ids must be new in the partition (ask `knownIds`). */
  readonly prompts: readonly EnrolledPrompt[];
  readonly duplicates: number;
  readonly rejected: number;
  /** New totals after this batch. */
  readonly sourceRows: number;
  readonly promptsBytes: number;
  readonly rejectedBytes: number;
  readonly enrolment: 'open' | 'limited' | 'complete';
  readonly pin: SourcePin;
  readonly happenings: readonly Happening[];
}

export interface PromptKey {
  readonly partition: string;
  readonly id: string;
}

/** What a record has counted. */
export interface RecordCounts {
  readonly tokens: number;
  readonly turns: number;
  readonly truncated: number;
}

/** A right to work on one prompt until this worker ends; the fence rises by one per lease, and commits with an older one are refused. */
export interface Lease extends PromptKey {
  readonly offset: number;
  readonly bytes: number;
  readonly turns: number;
  readonly fence: number;
  /** JSON of the turns already finished in an earlier life of the run, in order (`RecordTurn` each). */
  readonly finishedTurns: readonly string[];
  /** 0, and one more with each new attempt at a prompt that had ended: the salt of its seeds. */
  readonly round: number;
  /** The live record that the new one will supersede. Absent: there is none. */
  readonly replaces?: RecordCounts;
}

export interface FinishedTurn extends PromptKey {
  readonly fence: number;
  /** Counted from 0; turns are finished in order and once. */
  readonly turn: number;
  /** JSON of a `RecordTurn`. */
  readonly body: string;
  readonly tokens: number;
  readonly truncated: boolean;
  readonly launch: number;
  /** Other launches that made a part of the answer. */
  readonly alsoBy?: readonly number[];
}

export interface CommittedRecord extends PromptKey {
  readonly fence: number;
  readonly shard: number;
  /** Where the shard's committed bytes end: records lie without gaps, in the order in which they are committed. */
  readonly offset: number;
  readonly bytes: number;
  readonly sha256: string;
  /** All output tokens of the record, earlier finished turns included. */
  readonly tokens: number;
  readonly turns: number;
  readonly truncated: number;
  /** That of the last turn; those of the turns finished before are known. */
  readonly launch: number;
  /** Other launches that made a part of the last answer. */
  readonly alsoBy?: readonly number[];
}

export interface AttemptRow extends PromptKey {
  readonly turn: number;
  readonly launch: number;
  readonly startedAt: number;
  readonly endedAt: number;
  /** An `OutcomeKind` of `engine/dialect.ts`. */
  readonly outcome: string;
  readonly status: number;
  readonly because: string;
  /** Of `completed` they come with the turn or the record; of every other outcome they count as generated and not as spent. */
  readonly tokens: number;
}

export interface SetAside extends PromptKey {
  readonly fence: number;
  readonly reason: AsideReason;
  /** In numbers and in the server's own words. */
  readonly because: string;
}

/** As `SetAside`, for an answer that the run does not want: no record, no reason to look at. */
export type Drop = Omit<SetAside, 'reason' | 'because'>;

/**
 * Applied in this order: attempts, turns, records, asides, drops. So one commit may finish a turn and set its prompt aside: the
 * answer was paid for (generated) and is not kept (not spent). A prompt set aside or dropped loses its finished turns; where
 * it replaces a record, it is done again with that record.
 */
export interface Commit {
  readonly turns: readonly FinishedTurn[];
  readonly records: readonly CommittedRecord[];
  readonly asides: readonly SetAside[];
  readonly drops: readonly Drop[];
  readonly attempts: readonly AttemptRow[];
  readonly happenings: readonly Happening[];
}

export interface LaunchRow {
  readonly server: string;
  readonly engine: string;
  readonly engineVersion: string;
  readonly kvCacheDtype: string;
  readonly weights: string;
  readonly policyHash: string;
  /** Resolved flags and facts as JSON; environment values are stored as names. */
  readonly detail: string;
  readonly startedAt: number;
}

export interface RecordedLaunch extends LaunchRow {
  readonly id: number;
  /** No record of it is live, and none will be. */
  readonly isWithdrawn: boolean;
}

/** A rule that was added after the run had begun. */
export interface AddedRule {
  readonly rule: PolicyRule;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** What withdrawing has taken away. */
export interface Withdrawn {
  readonly records: number;
  /** Answers: those of the records, and finished turns of unfinished conversations. */
  readonly turns: number;
  /** Prompts that are asked again. */
  readonly prompts: number;
  /** Back in the budget; what was generated stays generated. */
  readonly tokens: number;
}
export type WithdrawnPart = Withdrawn & { readonly partition: string };
/** Partitions that lose nothing are left out. */
export type Withdrawal = Withdrawn & { readonly partitions: readonly WithdrawnPart[]; readonly events: readonly Event[] };

export interface ShardRow {
  readonly partition: string;
  readonly number: number;
  readonly committedBytes: number;
  readonly records: number;
  readonly sealed: boolean;
  /** sha256 of the whole file, '' until sealed. */
  readonly sha256: string;
}

/** Where the bytes of a live record are. */
export interface LiveRecord extends PromptKey {
  readonly shard: number;
  readonly offset: number;
  readonly bytes: number;
  readonly sha256: string;
  readonly launch: number;
}

export interface AsideRow extends PromptKey {
  readonly reason: AsideReason;
  readonly because: string;
}

export interface Ledger {
  /** The run's identity: what must not change. Empty before `setIdentity`. */
  identity(): Facts;
  setIdentity(facts: Facts, happenings?: readonly Happening[]): readonly Event[];
  /**
   * Adds partitions that are not there and raises budgets and limits that are, never lowers them (0 = none is highest);
   * happens before any enrolment. A raised limit turns `limited` back into `open`. `exactly` lowers them too.
   */
  declarePartitions(settings: readonly PartitionSettings[], exactly?: boolean): void;
  /** The source of a partition is another one now: its rows are read from the first on, what is enrolled stays. Nothing enrolled: refusals are forgotten. */
  reopenSource(partition: string): void;
  partitions(): readonly PartitionCounters[];

  /** Of these ids, those already enrolled in the partition. */
  knownIds(partition: string, ids: readonly string[]): ReadonlySet<string>;
  enrol(batch: EnrolBatch): readonly Event[];

  /** Leases up to n waiting prompts, unfinished conversations first, then in source order; `onlyUnfinished` leases only those begun. */
  lease(partition: string, n: number, onlyUnfinished?: boolean): readonly Lease[];
  /** Gives leases back without any outcome (a drain that stopped before sending). */
  unlease(keys: readonly (PromptKey & { readonly fence: number })[]): void;
  /** At start: every lease of a dead worker becomes waiting. Returns how many. */
  releaseLeases(): number;

  /**
   * Of these ids, those that are done wait for a new attempt; their records stay live until the new ones are committed, which
   * supersedes them in the same transaction. Others are passed over.
   */
  supersede(
    partition: string,
    ids: readonly string[],
    because: string,
  ): { readonly records: number; readonly events: readonly Event[] };
  /** Prompts without a record (aside, dropped) wait again; the counts say how many of each. */
  requeue(partition: string): { readonly aside: number; readonly dropped: number; readonly events: readonly Event[] };

  /**
   * No record of these launches may be used, now or later: live ones with any turn of theirs become withdrawn, begun conversations
   * with such a turn begin anew, and the prompts of both wait again in a new round. Superseded records, and prompts aside or dropped, stay.
   * What is leased is settled when its lease ends: a record of a withdrawn launch that is committed later is entered as withdrawn, and its
   * prompt waits again. Release the leases of dead workers before. Launches that are withdrawn already are passed over.
   */
  withdraw(launches: readonly number[], because: string): Withdrawal;
  /** Adds the rule, unless the same one is there, and withdraws the launches that break it, in one transaction. */
  addRule(rule: PolicyRule, broken: readonly number[]): Withdrawal;
  /** In the order in which they were added. */
  addedRules(): readonly AddedRule[];
  /** All of it or nothing. The returned events are the happenings, numbered, and `partition.withdrawn` where a record came too late. */
  commit(commit: Commit): readonly Event[];
  /** The id that turns, records and attempts refer to. */
  recordLaunch(launch: LaunchRow): number;
  /** In the order in which they were recorded. */
  launches(): readonly RecordedLaunch[];
  emit(happenings: readonly Happening[]): readonly Event[];
  /** In order; at most 1,000 unless told. */
  events(after: number, most?: number): readonly Event[];

  shards(): readonly ShardRow[];
  sealShard(partition: string, shard: number, sha256: string, happening: Happening): readonly Event[];
  /** In the order of the files, read in pages: commits may happen meanwhile. */
  liveRecords(partition: string): Iterable<LiveRecord>;
  /** The first of them in the order of the source; all unless told. */
  setAsides(partition: string, most?: number): readonly AsideRow[];
  /** How many prompts of a partition are set aside for each reason; none for a reason that is not there. */
  asideCounts(partition: string): Readonly<Partial<Record<AsideReason, number>>>;
  /** How many attempts ended in each outcome. */
  outcomeCounts(): Readonly<Record<string, number>>;
  close(): void;
}
