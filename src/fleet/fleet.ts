/**
 * The servers of a run, and which one takes the next request: of those that are ready and well, the one with the fewest
 * in flight. It also keeps what the retry decision needs to tell a sick server from a poison prompt: who was answered
 * since when, how often a server was lost, and for how long nobody has been answered.
 */
import { isContextReason } from '../base/aside-reason.ts';
import { AerieError } from '../base/errors.ts';
import type { Outcome, ServerFacts } from '../engine/dialect.ts';
import type { Clock } from '../host/host.ts';
import type { Endpoint } from '../server/endpoint.ts';
import type { KeptServer } from '../server/kept-server.ts';
import { Standing } from './standing.ts';

/** One request on its way. */
export interface Sending {
  readonly endpoint: Endpoint;
  readonly sinceMs: number;
  /** What the server had answered when it was sent. */
  readonly answersBefore: number;
}

export interface FleetStanding {
  readonly everCompleted: boolean;
  readonly refusalsInARow: number;
  readonly rejectionsInARow: number;
  /** For how long every outcome has been trouble; 0 once anything is answered. Time in which no server was ready is left out. */
  readonly quietMs: number;
  /** A request is being worked on right now, as far as can be known. */
  readonly isWorking: boolean;
}

/** A refusal comes in milliseconds; what takes longer is being worked on. */
const WORKING_AFTER_MS = 10_000;
/** A server that was away this long was started again: its trouble begins anew. */
const LONG_AWAY_MS = 60_000;
/** For a first look at every server before the first request: one that answers does so in milliseconds, one that hangs is not waited for. */
const FIRST_LOOKS_MS = 30_000;

export class Fleet {
  readonly #servers: readonly KeptServer[];
  readonly #clock: Clock;
  readonly #standings = new Map<string, Standing>();
  readonly #sendings = new Set<Sending>();
  readonly #waiting = new Set<() => void>();
  readonly #awaySince = new Map<string, number>();
  readonly #facts = new Map<string, ServerFacts>();
  readonly #listeners = new Set<() => void>();
  #troubleSinceMs: number | undefined;
  #deaths = 0;
  #isBegun = false;
  /** Which models there are must not be a race: nothing is asked before each server has been looked at. */
  #waitsForLooks: boolean;

  constructor(servers: readonly KeptServer[], clock: Clock) {
    this.#servers = servers;
    this.#clock = clock;
    this.#waitsForLooks = servers.length > 1;
    for (const server of servers) {
      this.#standings.set(server.name, new Standing());
      server.onChange(() => this.#serverChanged(server));
    }
  }

  /** Times that a server was lost after it had been ready. */
  get deaths(): number {
    return this.#deaths;
  }

  /** A request would be sent at once. */
  get isReady(): boolean {
    return this.#servers.some(({ endpoint }) => endpoint !== undefined);
  }

  /** What each server said of itself when it was last ready; one that is only away counts, one that has failed does not. */
  facts(): readonly ServerFacts[] {
    return this.#servers.flatMap(({ name, failure }) => (failure === undefined ? (this.#facts.get(name) ?? []) : []));
  }

  /** Told at each change of a server, until the answer is called. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
  }

  /**
   * Waits for a ready server; undefined when the signal aborts first. The servers are started by the first request: a run
   * with nothing left to do starts none. Rejects when every server has failed. `above`: a context of more tokens than this is
   * asked for, where a server has one.
   */
  async choose(signal: AbortSignal, above = 0): Promise<Endpoint | undefined> {
    this.#begin(signal);
    while (!signal.aborted) {
      this.#refuseMixture();
      if (this.#waitsForLooks && this.#servers.some(({ wasLookedAt }) => !wasLookedAt)) {
        await this.#change(signal);
        continue;
      }
      const nowMs = this.#clock.elapsed();
      const chosen = chooseServer(
        this.#servers.map(({ name, endpoint }) => {
          const standing = this.#standingOf(name);
          const hasRoom = above === 0 || (endpoint?.facts.contextTokens ?? 0) > above || !this.hasLongerContext(above);
          return { endpoint: hasRoom ? endpoint : undefined, inFlight: standing.inFlight, isSick: standing.isSick(nowMs) };
        }),
      );
      if (chosen !== undefined) return chosen;
      const failures = this.#servers.map((server) => server.failure).filter((failure) => failure !== undefined);
      if (failures.length === this.#servers.length) throw failures[0] ?? noServers();
      await this.#change(signal);
    }
    return undefined;
  }

  /** Starts every server and waits until each is ready or has failed, or the signal aborts. */
  async whenSettled(
    signal: AbortSignal,
  ): Promise<{ readonly ready: readonly Endpoint[]; readonly failed: readonly AerieError[] }> {
    this.#begin(signal);
    const isOpen = ({ endpoint, failure }: KeptServer) => endpoint === undefined && failure === undefined;
    while (!signal.aborted && this.#servers.some(isOpen)) await this.#change(signal);
    return {
      ready: this.#servers.flatMap(({ endpoint }) => endpoint ?? []),
      failed: this.#servers.flatMap(({ failure }) => failure ?? []),
    };
  }

  /** A server, ready or on its way back, has a context of more tokens than this. */
  hasLongerContext(than: number): boolean {
    return this.#servers.some(({ contextTokens, failure }) => failure === undefined && contextTokens > than);
  }

  sent(endpoint: Endpoint): Sending {
    const standing = this.#standingOf(endpoint.server);
    standing.inFlight += 1;
    const sending = { endpoint, sinceMs: this.#clock.elapsed(), answersBefore: standing.answers };
    this.#sendings.add(sending);
    return sending;
  }

  ended(sending: Sending, prompt: string, outcome: Outcome): void {
    const { endpoint } = sending;
    const nowMs = this.#clock.elapsed();
    this.#sendings.delete(sending);
    // A prompt that is too long says nothing about the server.
    const isTooLong = outcome.kind === 'refused' && isContextReason(outcome.reason);
    this.#standingOf(endpoint.server).ended(prompt, isTooLong ? 'abandoned' : outcome.kind, nowMs, sending.sinceMs);
    const server = this.#servers.find(({ name }) => name === endpoint.server);
    if (outcome.kind === 'completed') {
      this.#troubleSinceMs = undefined;
      server?.answered();
    } else if (outcome.kind !== 'refused' && outcome.kind !== 'abandoned') {
      this.#troubleSinceMs ??= nowMs;
    }
    const isAway = outcome.kind === 'lost' || outcome.kind === 'unauthorised';
    if (isAway && server?.endpoint === endpoint) server.suspect();
  }

  /** Launches, as the ledger counts them, that may answer now. */
  launchesInUse(): readonly number[] {
    return this.#servers.flatMap(({ endpoint }) => endpoint?.launch ?? []);
  }

  /** This worker asks it nothing more; where it was the last, the error is the run's own. */
  leaveOut(server: string, error: AerieError): void {
    this.#servers.find(({ name }) => name === server)?.leaveOut(error);
  }

  /** The servers that took no part to the end, each with its reason. */
  leftOut(): { readonly server: string; readonly because: string }[] {
    if (!this.#isBegun) return [];
    return this.#servers.flatMap(({ name, failure, wasReady, lastSeen }) => {
      if (failure !== undefined) return [{ server: name, because: failure.message }];
      return wasReady
        ? []
        : [{ server: name, because: `it was not ready before the run ended (${lastSeen || 'no answer yet'})` }];
    });
  }

  /** How many requests this server has answered, whoever asked. */
  answersOf(server: string): number {
    return this.#standingOf(server).answers;
  }

  /**
   * What this worker has asked of a server: what is still to be answered, and what was. A server that it waits for, to know
   * what it is or because a request was lost, has something to answer too: it may look well and never say it.
   */
  askedOf(server: string): { readonly inFlight: number; readonly answered: number } {
    const { inFlight, answers } = this.#standingOf(server);
    const isWaitedFor = this.#servers.some((kept) => kept.name === server && kept.isWaitedFor);
    return { inFlight: isWaitedFor ? Math.max(1, inFlight) : inFlight, answered: answers };
  }

  standing(server: string): FleetStanding {
    const nowMs = this.#clock.elapsed();
    return {
      everCompleted: [...this.#standings.values()].some(({ answers }) => answers > 0),
      refusalsInARow: this.#standingOf(server).refusalsInARow,
      rejectionsInARow: this.#standingOf(server).rejectionsInARow,
      quietMs: this.#troubleSinceMs === undefined ? 0 : nowMs - this.#troubleSinceMs,
      isWorking: [...this.#sendings].some(({ sinceMs }) => nowMs - sinceMs > WORKING_AFTER_MS),
    };
  }

  /** A server that never fitted the run is a mistake of the run file: which of two models answers must not be a race. */
  #refuseMixture(): void {
    const wrong = this.#servers.find(({ failure, wasReady }) => failure?.code === 'run-file.differs' && !wasReady);
    if (wrong?.failure !== undefined) throw wrong.failure;
  }

  #begin(signal: AbortSignal): void {
    if (this.#isBegun) return;
    this.#isBegun = true;
    for (const server of this.#servers) server.start();
    if (!this.#waitsForLooks) return;
    void this.#clock.sleep(FIRST_LOOKS_MS, signal).then(() => {
      this.#waitsForLooks = false;
      this.#wake();
    });
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  #standingOf(server: string): Standing {
    const standing = this.#standings.get(server);
    if (standing === undefined) throw new Error(`no server ${server} in the fleet`);
    return standing;
  }

  #serverChanged(server: KeptServer): void {
    if (server.endpoint !== undefined) this.#facts.set(server.name, server.endpoint.facts);
    const awaySince = this.#awaySince.get(server.name);
    if (server.endpoint === undefined) {
      if (awaySince === undefined && server.wasReady) {
        this.#deaths += 1;
        this.#awaySince.set(server.name, this.#clock.elapsed());
      }
    } else if (awaySince !== undefined) {
      this.#awaySince.delete(server.name);
      if (this.#clock.elapsed() - awaySince > LONG_AWAY_MS) this.#troubleSinceMs = undefined;
    }
    for (const listener of this.#listeners) listener();
    this.#wake();
  }

  /** Resolves at the next change of any server, or when the signal aborts; leaves no listener behind. */
  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener('abort', wake);
    });
  }
}

export interface Candidate {
  readonly endpoint: Endpoint | undefined;
  readonly inFlight: number;
  readonly isSick: boolean;
}

/** Pure: of the ready servers a well one before a sick one, then the one with the fewest requests in flight, then the first. */
export function chooseServer(servers: readonly Candidate[]): Endpoint | undefined {
  const ready = servers.filter(({ endpoint }) => endpoint !== undefined);
  const well = ready.filter(({ isSick }) => !isSick);
  const [first, ...others] = well.length > 0 ? well : ready;
  return others.reduce((best, next) => (best !== undefined && next.inFlight < best.inFlight ? next : best), first)?.endpoint;
}

function noServers(): AerieError {
  return new AerieError('server.unreachable', 'The run has no server.', { remedy: 'Add one under servers: in the run file.' });
}
