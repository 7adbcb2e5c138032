/**
 * The committer: durable before visible. Everything finished goes through one loop, in order:
 *
 *   append to the shards and fdatasync → one ledger transaction with the byte ranges → events to whoever listens
 *
 * Group commits: what gathers in 20 ms, or 256 records. When a disk fails, nothing half-done stays: the shards are cut
 * back to what the ledger has, the error stops the session, and the prompts concerned are asked again on resume.
 */
import { AerieError, bug } from '../base/errors.ts';
import type { Event, Happening } from '../base/events.ts';
import type { Clock } from '../host/host.ts';
import type { AttemptRow, Commit, CommittedRecord, Drop, FinishedTurn, Ledger, SetAside } from '../ledger/ledger.ts';
import { LineBuffer } from '../shard/line-buffer.ts';
import type { TrainingRecord } from '../shard/record.ts';
import { renderRecord } from '../shard/render-record.ts';
import type { ShardSet } from './shard-set.ts';

/** Long enough to gather a batch at thousands of answers a second, short enough that nobody sees it. */
const GATHER_MS = 20;
const MOST_RECORDS = 256;
/** Finished but not yet durable: past this, admission waits for the disk. 4 full batches. */
const MOST_PENDING = 1024;

/** Moments at which a test may end the process, beside those inside an append and a seal. */
export type CommitPoint = 'before-commit' | 'after-commit';

type RecordRow = Omit<CommittedRecord, 'shard' | 'offset' | 'bytes' | 'sha256'>;

export interface FinishedRecord {
  readonly record: TrainingRecord;
  readonly row: RecordRow;
}

/** The records of one commit. Their lines are in the memory of `buffer`, which serves another batch after the commit. */
interface Batch {
  readonly buffer: LineBuffer;
  readonly records: { readonly line: Buffer; readonly row: RecordRow }[];
}

export interface CommitterOptions {
  readonly ledger: Ledger;
  readonly shards: ShardSet;
  readonly clock: Clock;
  readonly at: (point: CommitPoint) => void;
  /** Told after the commit, in order. */
  readonly onEvents: (events: readonly Event[]) => void;
}

export class Committer {
  readonly #options: CommitterOptions;
  #turns: FinishedTurn[] = [];
  /** In order; the last one is being filled. */
  readonly #batches: Batch[] = [];
  readonly #spare: LineBuffer[] = [];
  #asides: SetAside[] = [];
  #drops: Drop[] = [];
  #attempts: AttemptRow[] = [];
  #happenings: Happening[] = [];
  #wake: (() => void) | undefined;
  #closing = false;
  #waiting: (() => void)[] = [];
  #failure: unknown;
  #onFailure: (thrown: unknown) => void = () => undefined;
  readonly #loop: Promise<void>;

  constructor(options: CommitterOptions) {
    this.#options = options;
    this.#loop = this.#run().catch((thrown: unknown) => {
      this.#failure = thrown ?? bug('the committer ended without a reason');
      this.#onFailure(this.#failure);
      for (const resume of this.#waiting.splice(0)) resume();
    });
  }

  addTurn(turn: FinishedTurn): void {
    this.#turns.push(turn);
    this.#stir();
  }

  /** Renders it at once: what waits for the disk is bytes, not the record. */
  addRecord({ record, row }: FinishedRecord): void {
    const { buffer, records } = this.#openBatch();
    records.push({ line: renderRecord(record, buffer), row });
    this.#stir();
  }

  addAside(aside: SetAside, happening: Happening): void {
    this.#asides.push(aside);
    this.#happenings.push(happening);
    this.#stir();
  }

  addDrop(drop: Drop): void {
    this.#drops.push(drop);
    this.#stir();
  }

  addAttempt(attempt: AttemptRow): void {
    this.#attempts.push(attempt);
    this.#stir();
  }

  /** Told at once what stopped the loop: nothing given to it from then on is kept. */
  whenFailed(listener: (thrown: unknown) => void): void {
    this.#onFailure = listener;
    if (this.#failure !== undefined) listener(this.#failure);
  }

  /** Waits while more is pending than the disk should be behind. */
  async room(): Promise<void> {
    while (this.#pending() > MOST_PENDING && this.#failure === undefined) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Commits everything given so far and ends. Throws what stopped the loop. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#wake?.();
    await this.#loop;
    if (this.#failure !== undefined) throw this.#failure;
  }

  #stir(): void {
    this.#wake?.();
  }

  #isEmpty(): boolean {
    return [this.#turns, this.#batches, this.#asides, this.#drops, this.#attempts].every(({ length }) => length === 0);
  }

  #isFull(): boolean {
    return (this.#batches[0]?.records.length ?? 0) >= MOST_RECORDS;
  }

  #pending(): number {
    return this.#batches.reduce((sum, { records }) => sum + records.length, this.#turns.length);
  }

  #openBatch(): Batch {
    const last = this.#batches.at(-1);
    if (last !== undefined && last.records.length < MOST_RECORDS) return last;
    const batch = { buffer: this.#spare.pop() ?? new LineBuffer(), records: [] };
    this.#batches.push(batch);
    return batch;
  }

  /** One is filled while another one is written; what a slow disk needs beyond them is given back. */
  #recycle({ buffer }: Batch): void {
    if (this.#spare.length > 0) return;
    buffer.reset();
    this.#spare.push(buffer);
  }

  async #run(): Promise<void> {
    for (;;) {
      await this.#something();
      if (this.#isEmpty()) return;
      if (!this.#closing && !this.#isFull()) await this.#options.clock.sleep(GATHER_MS);
      await this.#commitOnce();
      for (const resume of this.#waiting.splice(0)) resume();
    }
  }

  /** Resolves when there is something to commit, or nothing more to come. */
  async #something(): Promise<void> {
    while (this.#isEmpty() && !this.#closing) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async #commitOnce(): Promise<void> {
    const { ledger, shards, at, onEvents } = this.#options;
    const batch = this.#batches.shift();
    const turns = this.#turns.splice(0);
    const rest = {
      ...{ asides: this.#asides.splice(0), drops: this.#drops.splice(0) },
      ...{ attempts: this.#attempts.splice(0), happenings: this.#happenings.splice(0) },
    };
    const records = batch?.records ?? [];
    const places = await shards.append(records.map(({ line, row }) => ({ partition: row.partition, line })));
    at('before-commit');
    const rows: CommittedRecord[] = records.map(({ row }, nth) => ({ ...row, ...(places[nth] ?? missingPlace()) }));
    const commit: Commit = { turns, records: rows, ...rest };
    let events: readonly Event[];
    try {
      events = ledger.commit(commit);
    } catch (thrown) {
      // A disk that failed in the middle of a transaction may have taken it all the same: then the bytes must stay, and the
      // next start, which reads the ledger anew, knows whether they count.
      if (!(thrown instanceof AerieError && thrown.code === 'disk.failed')) await shards.rollback();
      throw thrown;
    }
    shards.committed();
    if (batch !== undefined) this.#recycle(batch);
    at('after-commit');
    onEvents(events);
    await shards.sealFull((partition, { number, bytes, sha256 }) => {
      onEvents(
        ledger.sealShard(partition, number, sha256, {
          kind: 'shard.sealed',
          subject: partition,
          facts: { shard: number, bytes, sha256 },
        }),
      );
    });
  }
}

function missingPlace(): never {
  throw bug('an appended record has no place');
}
