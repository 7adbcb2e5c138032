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
}

/** What one answer adds, and what a conversation that comes to nothing takes back. */
export interface AnswerCounts {
  readonly answers: number;
  readonly tokens: number;
  readonly truncated: number;
}

export type NewAnswer = AnswerCounts & { readonly promptTokens: number };

export class Tally {
  readonly #partitions = new Map<string, PartitionTally>();
  readonly #replies = new Map<string, number>();
  sessionAnswers = 0;
  sessionTokens = 0;
  /** Of the prompts that these answers were given to, everything said before included. */
  sessionPromptTokens = 0;
  retries = 0;
  /** Sum over all attempts in flight is not kept one by one: attempts × mean time is enough for an estimate. */
  attemptsInFlight = 0;
  mostInFlight = 0;

  begin(counters: PartitionCounters): void {
    const { spentTokens, answers, truncated } = counters;
    this.#partitions.set(counters.name, { spentTokens, answers, truncated, turnsUnderWay: 0 });
  }

  of(partition: string): Readonly<PartitionTally> {
    return this.#of(partition);
  }

  /** A conversation begins with this many turns to answer. */
  began(partition: string, turns: number): void {
    this.#of(partition).turnsUnderWay += turns;
  }

  answered(partition: string, { answers, tokens, truncated, promptTokens }: NewAnswer): void {
    const tally = this.#of(partition);
    tally.spentTokens += tokens;
    tally.answers += answers;
    tally.turnsUnderWay -= answers;
    tally.truncated += truncated;
    this.sessionAnswers += answers;
    this.sessionTokens += tokens;
    this.sessionPromptTokens += promptTokens;
  }

  /** Means over the answers of this session; zeros before the first. */
  means(): { readonly answers: number; readonly promptTokens: number; readonly outputTokens: number } {
    const answers = this.sessionAnswers;
    const count = Math.max(1, answers);
    return { answers, promptTokens: this.sessionPromptTokens / count, outputTokens: this.sessionTokens / count };
  }

  /** A conversation is over for this worker with this many turns unanswered. */
  left(partition: string, unanswered: number): void {
    this.#of(partition).turnsUnderWay -= unanswered;
  }

  /** Turns that were set aside or dropped, and records that were superseded, no longer count, as in the ledger. */
  lost(partition: string, { answers, tokens, truncated }: AnswerCounts): void {
    const tally = this.#of(partition);
    tally.spentTokens -= tokens;
    tally.answers -= answers;
    tally.truncated -= truncated;
  }

  retried(): void {
    this.retries += 1;
  }

  sent(): void {
    this.attemptsInFlight += 1;
    this.mostInFlight = Math.max(this.mostInFlight, this.attemptsInFlight);
  }

  ended(): void {
    this.attemptsInFlight -= 1;
  }

  /** Counts a reply of this server; how many there were before. Those that are being verified count: else all that arrive meanwhile are the first. */
  replied(server: string): number {
    const before = this.#replies.get(server) ?? 0;
    this.#replies.set(server, before + 1);
    return before;
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
