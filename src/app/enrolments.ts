/** The enrolment of all partitions of a run, one after another in the order of the file, while generation goes on. */
import type { Event } from '../base/events.ts';
import { enrolPartition, isFinished } from '../generation/enrol.ts';
import type { Host } from '../host/host.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { RunSpec } from '../spec/run.ts';

export interface EnrolmentsOptions {
  readonly run: RunSpec;
  readonly ledger: Ledger;
  /** The first refused row stops the run. */
  readonly isStrict: boolean;
  readonly env: Host['env'];
  readonly onNote: (text: string) => void;
  readonly onEvents: (events: readonly Event[]) => void;
}

export class Enrolments {
  readonly #open: Set<string>;
  readonly #ending = new AbortController();
  readonly #options: EnrolmentsOptions;
  #waiting: (() => void)[] = [];
  #reading: Promise<void> = Promise.resolve();

  constructor(options: EnrolmentsOptions) {
    this.#options = options;
    const counters = new Map(options.ledger.partitions().map((partition) => [partition.name, partition]));
    const open = options.run.partitions.filter(({ name, limit }) => {
      const partition = counters.get(name);
      return partition === undefined || !isFinished(partition, limit);
    });
    this.#open = new Set(open.map(({ name }) => name));
  }

  /** Begins to read; `onFailure` is told what stopped it. */
  start(onFailure: (thrown: unknown) => void): void {
    this.#reading = this.#read().catch((thrown: unknown) => {
      this.#open.clear();
      onFailure(thrown);
      this.#stir();
    });
  }

  isOpen(partition: string): boolean {
    return this.#open.has(partition);
  }

  /** Resolves when the next batch is in the ledger, or a partition has ended. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Stops between two batches. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { run, ...rest } = this.#options;
    for (const partition of run.partitions) {
      if (!this.#open.has(partition.name)) continue;
      await enrolPartition({
        partition,
        ...rest,
        folder: run.folder,
        signal: this.#ending.signal,
        onBatch: () => this.#stir(),
      });
      this.#open.delete(partition.name);
      this.#stir();
    }
  }

  #stir(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
