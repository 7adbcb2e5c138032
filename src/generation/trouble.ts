/** What has gone wrong with one turn so far, and what the servers answered meanwhile: the facts behind `decide-retry.ts`. */
import { isContextReason } from '../base/aside-reason.ts';
import type { Sending } from '../fleet/fleet.ts';
import { type Failure, LOSSES_UNTIL_SUSPECT, type TurnHistory } from './decide-retry.ts';

export class Trouble {
  /** Trial questions that were not answered. */
  trials = 0;
  /** This turn has no room in a context of so many tokens. */
  noRoomIn = 0;
  #failures = 0;
  #blamedFailures = 0;
  #losses = 0;
  #blamedLosses = 0;
  #refusals = 0;
  #rejections = 0;
  #blamedRejections = 0;
  #overloads = 0;
  #deathsAtFirstLoss = 0;
  /** Answers of a server when this turn was last in trouble there. */
  readonly #seen = new Map<string, number>();

  /** Sent only when no other suspect is in flight. */
  get isSuspect(): boolean {
    return this.#losses >= LOSSES_UNTIL_SUSPECT;
  }

  /** −1 where it has had no trouble: then anything was answered since. */
  answersSeen(server: string): number {
    return this.#seen.get(server) ?? -1;
  }

  /** True where a failure is the turn's own, as far as anyone can tell: the server answered others in between. */
  note(
    failure: Failure,
    { endpoint, answersBefore }: Sending,
    fleet: { answersOf(server: string): number; deaths: number },
  ): boolean {
    if (failure.outcome === 'overloaded') {
      this.#overloads += 1;
      return false;
    }
    if (isContextReason(failure.reason)) return false; // its lengths are all that it is about
    const answers = fleet.answersOf(endpoint.server);
    const isBlamed = answers > (this.#seen.get(endpoint.server) ?? answersBefore);
    this.#seen.set(endpoint.server, answers);
    if (failure.outcome === 'unauthorised') {
      this.#rejections += 1;
      if (isBlamed) this.#blamedRejections += 1;
      return false;
    }
    if (failure.outcome === 'refused') {
      this.#refusals += 1;
      return false;
    }
    if (failure.outcome === 'lost' && !failure.deadline) {
      this.#noteLoss(isBlamed, fleet.deaths);
      return false;
    }
    this.#failures += 1;
    if (isBlamed) this.#blamedFailures += 1;
    return isBlamed;
  }

  #noteLoss(isBlamed: boolean, deaths: number): void {
    if (this.#losses === 0) this.#deathsAtFirstLoss = deaths;
    if (this.isSuspect && isBlamed) this.#blamedLosses += 1;
    this.#losses += 1;
  }

  history(deaths: number): TurnHistory {
    return {
      failures: this.#failures,
      blamedFailures: this.#blamedFailures,
      losses: this.#losses,
      blamedLosses: this.#blamedLosses,
      deathsWithout: this.#losses === 0 ? 0 : Math.max(0, deaths - this.#deathsAtFirstLoss - (this.#losses - 1)),
      refusals: this.#refusals,
      rejections: this.#rejections,
      blamedRejections: this.#blamedRejections,
      overloads: this.#overloads,
    };
  }
}
