/**
 * Plays a whole load and says what came of it: running and queued requests, tokens per second, hours, retractions, cache hits.
 *
 * `steady` leaves out the start (all requests young: contexts short, more of them fit, by 20 to 40 % too fast) and the end
 * (nothing left to send). A load without such a middle has none.
 */
import type { TwinLoad, TwinRequest } from './load.ts';
import type { TwinServer } from './server.ts';
import { difference, type Sums } from './tally.ts';
import { Timeline, type TimelineSlice } from './timeline.ts';
import { Twin } from './twin.ts';
import type { TwinEnding, TwinEvent } from './twin-event.ts';

/** Time-weighted means of a window. */
export interface Measures {
  readonly seconds: number;
  readonly running: number;
  readonly queued: number;
  readonly tokensPerSecond: number;
  /** KV tokens of one running request. */
  readonly liveContextTokens: number;
  /** Share of the pool that is neither free nor evictable. */
  readonly poolUse: number;
  readonly secondsPerStep: number;
  readonly retractions: number;
  /** Prompt tokens found in the cache, of all that were asked for (computed again after a retraction included). */
  readonly cacheHitRate: number;
  /** Of these, those from host memory. */
  readonly hostHitRate: number;
  readonly prefillTimeShare: number;
}

export interface TwinResult {
  readonly seconds: number;
  readonly hours: number;
  readonly ended: Readonly<Record<TwinEnding, number>>;
  readonly generatedTokens: number;
  readonly recomputedTokens: number;
  readonly meanRequestSeconds: number;
  readonly peakRunning: number;
  readonly whole: Measures;
  readonly steady: Measures | undefined;
  /** Queue empty at the client's own limit: a larger pool would not help, a larger limit might. */
  readonly isClientLimited: boolean;
  readonly timeline: readonly TimelineSlice[];
}

export function playLoad(server: TwinServer, load: TwinLoad): TwinResult {
  const player = new Player(server, load);
  player.play();
  return player.result();
}

class Player {
  readonly #twin: Twin;
  readonly #load: TwinLoad;
  readonly #poolTokens: number;
  readonly #timeline = new Timeline();
  readonly #ended: Record<TwinEnding, number> = { finished: 0, aborted: 0, refused: 0, 'out-of-memory': 0 };
  /** Arrived, and held back by the client's limit. */
  readonly #held: TwinRequest[] = [];
  #sent = 0;
  #inFlight = 0;
  #requestSeconds = 0;
  #peakRunning = 0;
  #steadyFrom: Sums | undefined;
  #steadyTo: Sums | undefined;

  constructor(server: TwinServer, load: TwinLoad) {
    this.#load = load;
    this.#poolTokens = server.poolTokens;
    this.#twin = new Twin(server, {
      onEvent: (event) => this.#hear(event),
      onStretch: (stretch) => {
        this.#peakRunning = Math.max(this.#peakRunning, stretch.running);
        this.#timeline.add(stretch);
      },
    });
  }

  play(): void {
    const { requests, arrivals } = this.#load;
    if (arrivals.kind === 'closed') for (const request of requests.slice(0, arrivals.inFlight)) this.#send(request);
    else
      requests.forEach((request, at) => {
        this.#twin.advance(arrivals.atSeconds[at] ?? 0);
        if (this.#inFlight < arrivals.inFlight) this.#send(request, arrivals.atSeconds[at]);
        else this.#held.push(request);
      });
    this.#twin.advance();
  }

  result(): TwinResult {
    const sums = this.#twin.sums;
    const count = Object.values(this.#ended).reduce((sum, each) => sum + each, 0);
    const whole = this.#measure(sums);
    const isMiddle = this.#steadyFrom !== undefined && this.#steadyTo !== undefined;
    const middle = isMiddle ? difference(this.#steadyTo as Sums, this.#steadyFrom as Sums) : undefined;
    const steady = middle !== undefined && middle.seconds > 0 ? this.#measure(middle) : undefined;
    return {
      ...{ seconds: sums.seconds, hours: sums.seconds / 3600, ended: { ...this.#ended }, generatedTokens: sums.generatedTokens },
      ...{ recomputedTokens: sums.recomputedTokens, meanRequestSeconds: count === 0 ? 0 : this.#requestSeconds / count },
      ...{ peakRunning: this.#peakRunning, whole, steady, isClientLimited: this.#isClientLimited(steady ?? whole) },
      timeline: this.#timeline.slices(sums.seconds),
    };
  }

  #isClientLimited({ running, queued }: Measures): boolean {
    // Half a request, because a new one waits for the end of a step; nine tenths, because an open load may have nothing to send.
    return queued < 0.5 && running + queued >= 0.9 * this.#load.arrivals.inFlight;
  }

  #measure(sums: Sums): Measures {
    const per = (amount: number, of: number) => (of === 0 ? 0 : amount / of);
    return {
      seconds: sums.seconds,
      running: per(sums.runningSeconds, sums.seconds),
      queued: per(sums.queuedSeconds, sums.seconds),
      tokensPerSecond: per(sums.generatedTokens, sums.seconds),
      liveContextTokens: per(sums.contextSeconds, sums.runningSeconds),
      poolUse: per(sums.usedSeconds, sums.seconds * this.#poolTokens),
      secondsPerStep: per(sums.seconds - sums.prefillSeconds, sums.decodeSteps),
      retractions: sums.retractions,
      cacheHitRate: per(sums.cachedTokens, sums.promptTokens),
      hostHitRate: per(sums.hostCachedTokens, sums.promptTokens),
      prefillTimeShare: per(sums.prefillSeconds, sums.seconds),
    };
  }

  #send(request: TwinRequest, at?: number): void {
    this.#sent += 1;
    this.#inFlight += 1;
    if (this.#sent === this.#load.requests.length) this.#steadyTo = this.#twin.sums;
    this.#twin.submit(request, at);
  }

  #hear(event: TwinEvent): void {
    if (event.kind !== 'ended') return;
    this.#ended[event.ending] += 1;
    this.#inFlight -= 1;
    this.#requestSeconds += event.at - event.arrivedAt;
    const { requests, arrivals } = this.#load;
    // Two generations of requests, or a fifth of a short load: by then ages are mixed.
    const warm = Math.min(2 * arrivals.inFlight, Math.floor(requests.length / 5));
    if (this.#steadyFrom === undefined && this.#sent > warm && this.#sent - this.#inFlight >= warm)
      this.#steadyFrom = this.#twin.sums;
    const next = arrivals.kind === 'closed' ? requests[this.#sent] : this.#held.shift();
    if (next !== undefined) this.#send(next);
  }
}
