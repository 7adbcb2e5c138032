/**
 * The session's numbers in memory: what the budget and the progress display ask many times a second. It begins from
 * the ledger's counters and counts answers at the reply, so it is ahead of the ledger by at most one group commit.
 */
import type { PartitionCounters } from '../ledger/ledger.ts';

interface PartitionTally {
  spentTokens: number;
  answers: number;
  truncated: number;
  turnsUnderWay: number;
  conversationsUnderWay: number;
  done: number;
  aside: number;
}

export class Tally {
  readonly #partitions = new Map<string, PartitionTally>();
  readonly #replies = new Map<string, number>();
  sessionAnswers = 0;
  sessionTokens = 0;
  sessionDone = 0;
  retries = 0;
  /** Sum over all attempts in flight is not kept one by one: attempts × mean time is enough for an estimate. */
  attemptsInFlight = 0;

  begin(counters: PartitionCounters): void {
    this.#partitions.set(counters.name, {
      spentTokens: counters.spentTokens,
      answers: counters.answers,
      truncated: counters.truncated,
      turnsUnderWay: 0,
      conversationsUnderWay: 0,
      done: counters.done,
      aside: counters.aside,
    });
  }

  of(partition: string): Readonly<PartitionTally> {
    return this.#of(partition);
  }

  /** A conversation begins with this many turns to answer. */
  began(partition: string, turns: number): void {
    const tally = this.#of(partition);
    tally.turnsUnderWay += turns;
    tally.conversationsUnderWay += 1;
  }

  answered(partition: string, tokens: number, truncated: boolean, last: boolean): void {
    const tally = this.#of(partition);
    tally.spentTokens += tokens;
    tally.answers += 1;
    tally.turnsUnderWay -= 1;
    if (truncated) tally.truncated += 1;
    this.sessionAnswers += 1;
    this.sessionTokens += tokens;
    if (last) {
      tally.done += 1;
      this.sessionDone += 1;
    }
  }

  /** A conversation is over for this worker with this many turns unanswered. */
  left(partition: string, unanswered: number): void {
    const tally = this.#of(partition);
    tally.turnsUnderWay -= unanswered;
    tally.conversationsUnderWay -= 1;
  }

  /** The tokens of its finished turns no longer count as spent. */
  setAside(partition: string, tokens: number): void {
    const tally = this.#of(partition);
    tally.aside += 1;
    tally.spentTokens -= tokens;
  }

  retried(): void {
    this.retries += 1;
  }

  sent(): void {
    this.attemptsInFlight += 1;
  }

  ended(server: string): void {
    this.attemptsInFlight -= 1;
    this.#replies.set(server, this.repliesOf(server) + 1);
  }

  repliesOf(server: string): number {
    return this.#replies.get(server) ?? 0;
  }

  /** About how many tokens the attempts in flight have made so far: each is on average half way through an average answer. */
  estimatedTokensInFlight(): number {
    if (this.sessionAnswers === 0) return 0;
    return Math.round((this.attemptsInFlight * this.sessionTokens) / this.sessionAnswers / 2);
  }

  #of(partition: string): PartitionTally {
    const tally = this.#partitions.get(partition);
    if (tally === undefined) throw new Error(`no tally for partition ${partition}`);
    return tally;
  }
}
