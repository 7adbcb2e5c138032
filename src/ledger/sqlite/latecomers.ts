/**
 * Records that come after their launch was withdrawn: they are entered as withdrawn, so that the bytes of the shard stay
 * accounted for, and their prompts wait again in a new round; a record that was to be replaced stays live and still is.
 * For one commit, inside its transaction.
 */
import type { Happening } from '../../base/events.ts';
import type { CommittedRecord } from '../ledger.ts';
import type { Database } from './database.ts';
import { happeningOf, withdrawnLaunches } from './withdrawing.ts';

const BECAUSE = 'it was committed after its launch was withdrawn';

export class Latecomers {
  readonly #database: Database;
  readonly #records: CommittedRecord[] = [];
  /** Read once per commit, and only where there are records. */
  #withdrawn: ReadonlySet<number> | undefined;

  constructor(database: Database) {
    this.#database = database;
  }

  isWithdrawn(launches: readonly number[]): boolean {
    this.#withdrawn ??= withdrawnLaunches(this.#database);
    const withdrawn = this.#withdrawn;
    return withdrawn.size > 0 && launches.some((launch) => withdrawn.has(launch));
  }

  askAgain(prompt: number, record: CommittedRecord): void {
    this.#records.push(record);
    this.#database.run(`UPDATE prompts SET state = 'waiting', answered = 0, round = round + 1 WHERE ordinal = :prompt`, {
      prompt,
    });
  }

  /** One for each partition. */
  happenings(): readonly Happening[] {
    const names = [...new Set(this.#records.map(({ partition }) => partition))];
    return names.map((partition) => {
      const records = this.#records.filter((record) => record.partition === partition);
      const turns = records.reduce((sum, record) => sum + record.turns, 0);
      const tokens = records.reduce((sum, record) => sum + record.tokens, 0);
      const launches = [...new Set(records.map(({ launch }) => launch))].join(', ');
      return happeningOf({ partition, records: records.length, turns, prompts: records.length, tokens }, BECAUSE, launches);
    });
  }
}
