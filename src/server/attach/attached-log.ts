/** The log of an attached server as its watch reads it on: what it shows so far, and whether the server has begun anew in it. */
import type { Account } from '../../diagnosis/account.ts';
import type { LoggedEngine } from '../../diagnosis/log-facts.ts';
import { LogReader } from '../../diagnosis/read-log.ts';
import type { Clock } from '../../host/host.ts';
import type { LogSource } from '../launch/log-source.ts';

/** docker and journalctl may go through a whole log at each call: reading takes at most this part of the time. */
const SHARE = 0.05;

export class AttachedLog {
  readonly #source: LogSource | undefined;
  readonly #clock: Clock;
  #account: Account;
  /** It was read to its end once: what comes now is news. */
  #isCaughtUp: boolean;
  #notBeforeMs = 0;

  constructor(source: LogSource | undefined, engine: LoggedEngine, clock: Clock) {
    this.#source = source;
    this.#clock = clock;
    this.#account = source?.account() ?? new LogReader({ engine }).account();
    this.#isCaughtUp = (source?.bytes ?? 0) > 0;
  }

  get account(): Account {
    return this.#account;
  }

  /** Whether it shows a start that was not there before. `isLast`: the server has ended, and its last words are worth any reading. */
  async readOn(isLast: boolean): Promise<boolean> {
    const beganMs = this.#clock.elapsed();
    if (this.#source === undefined || (beganMs < this.#notBeforeMs && !isLast)) return false;
    const isWhole = await this.#source.readOn();
    const nowMs = this.#clock.elapsed();
    this.#notBeforeMs = nowMs + (nowMs - beganMs) / SHARE;
    const before = this.#account;
    this.#account = this.#source.account();
    const isAnew = this.#isCaughtUp && this.#account.startsBefore > before.startsBefore;
    this.#isCaughtUp ||= isWhole;
    return isAnew;
  }
}
