/**
 * Keeps one server ready for a worker: starts it (embedded) or waits for it (attached), watches it, and starts it
 * again when it dies. What happens next is decided in `server-state.ts`; this file gathers facts and acts.
 *
 * On failure: `failure` is an AerieError with the last log lines, and the state is final; nothing here touches records.
 */
import type { AerieError } from '../base/errors.ts';
import { openTimeLimit } from '../host/time-limit.ts';
import type { Reach } from '../machine/machine.ts';
import { AdmittedEndpoint, type EndpointOptions, type Renewal } from './admitted-endpoint.ts';
import { type Control, type Endpoint, type Look, lookAtHealth, wrongCertificate } from './endpoint.ts';
import { asAerieError, didNotStart, gaveUp } from './given-up.ts';
import { lastLogLines } from './launch-embedded.ts';
import type { LaunchedProcess } from './launched-process.ts';
import { MOST_DEATHS, nextServerState, relaunchPauseMs, type ServerObservation, type ServerState } from './server-state.ts';

export interface KeptServerOptions extends Omit<EndpointOptions, 'isDirect' | 'whoAnswers'> {
  /** Starts the process, or finds it again; left out where Aerie only attaches. */
  readonly launch?: () => Promise<LaunchedProcess>;
  /**
   * `restart`: a process that died is started again as it was, a few times. `launch`: `launch` itself decides what follows
   * a death, how long to wait and when to give up (by throwing); progress is its business too, and not `patienceMs`.
   */
  readonly afterDeath?: 'restart' | 'launch';
  /** The way to a server that is already there, and what the run file says of it. */
  readonly attach?: AttachedWay;
  /** How long the server may be away before the worker gives up. */
  readonly patienceMs: number;
}

export interface AttachedWay extends Partial<Pick<EndpointOptions, 'isDirect' | 'whoAnswers'>> {
  readonly written: string;
  readonly open: () => Promise<Reach>;
  /** Why nothing is sent to it though its health is well, as its watch sees it; '' = nothing speaks against it. */
  readonly heldBack?: () => string;
}

/** Between two looks at a server that is not ready: fast at first, because the embedded engine loads in a second. */
const LOOK_FIRST_MS = 100;
const LOOK_LONGEST_MS = 5_000;

const NO_BOUNDS = { patienceMs: Number.POSITIVE_INFINITY, mostDeaths: Number.POSITIVE_INFINITY } as const;

/** What is met at this end of a way that leads nowhere is no word of the server. */
const NO_WAY = 'there is no way to it through ssh yet';

export class KeptServer {
  readonly name: string;
  readonly #options: KeptServerOptions;
  readonly #ended = new AbortController();
  #state: ServerState;
  readonly #endpoint: AdmittedEndpoint;
  #process: LaunchedProcess | undefined;
  /** The way to it; undefined where it is this machine's own and cannot be lost. */
  #reach: Reach | undefined;
  #failure: AerieError | undefined;
  readonly #listeners: (() => void)[] = [];
  #wake: (() => void) | undefined;
  #launching: Promise<LaunchedProcess> | undefined;
  #lastSeen = '';
  /** The last lines of a process that has ended. */
  #evidence: readonly string[] = [];
  #wasReady = false;
  #wasLookedAt = false;
  #started = false;

  constructor(options: KeptServerOptions) {
    this.name = options.name;
    this.#options = options;
    const whoAnswers = options.attach?.whoAnswers;
    this.#endpoint = new AdmittedEndpoint({
      ...options,
      isDirect: isDirect(options),
      ...(whoAnswers === undefined ? {} : { whoAnswers }),
    });
    this.#state = { kind: 'starting', sinceMs: options.host.clock.elapsed(), deaths: 0 };
  }

  /** The endpoint when requests may be sent now. */
  get endpoint(): Endpoint | undefined {
    return this.#state.kind === 'ready' ? this.#endpoint.current : undefined;
  }

  get failure(): AerieError | undefined {
    return this.#failure;
  }

  /** It has been ready at least once. */
  get wasReady(): boolean {
    return this.#wasReady;
  }

  /** Its context when it was last ready; 0 = not known. */
  get contextTokens(): number {
    return this.#endpoint.contextTokens;
  }

  /** The process id of a launched server, for people who look for it. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Begins to keep the server; returns at once. A second call does nothing. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#state = { kind: 'starting', sinceMs: this.#options.host.clock.elapsed(), deaths: 0 };
    void this.#keep().catch((thrown: unknown) => {
      if (!this.#isOver()) this.#fail(asAerieError(thrown, this.name));
    });
  }

  /** Told after every change of state. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** What a first look saw is known; one that Aerie starts is not waited for. */
  get wasLookedAt(): boolean {
    return this.#wasLookedAt || this.#options.attach === undefined || this.#failure !== undefined;
  }

  /** Its process is there, and this worker can send it nothing yet. */
  get isWaitedFor(): boolean {
    return this.#process !== undefined && (this.#state.kind === 'starting' || this.#state.kind === 'suspect');
  }

  /** Why it is not ready, as last seen. */
  get lastSeen(): string {
    return this.#lastSeen;
  }

  /** A request to it was lost, or turned away: send nothing more until it has been looked at again. */
  suspect(): void {
    this.#observe({ kind: 'suspected' });
  }

  /** What is under way there will never be answered: its connections are ended, and it is looked at anew. */
  async cut(): Promise<void> {
    if (this.#endpoint.current === undefined || this.#isOver()) return;
    this.suspect();
    await this.#endpoint.cut();
  }

  /** Nothing more is sent to it by this worker. */
  leaveOut(error: AerieError): void {
    this.#fail(error);
  }

  answered(): void {
    if (this.#state.kind === 'ready' && this.#state.deaths > 0) this.#observe({ kind: 'answered' });
  }

  /** The worker ends: a launched server is left as it wants to be left, one that is just being launched too; an attached one stays. */
  async stop(): Promise<void> {
    this.#observe({ kind: 'stopped' });
    this.#ended.abort();
    const launched = this.#process ?? (await this.#launching?.catch(() => undefined));
    if (launched !== undefined) {
      const left = await launched.leave();
      const kind = left === 'stopped' ? 'server.stopped' : 'server.left-running';
      this.#options.emit({ kind, subject: this.name, facts: { pid: launched.pid } });
    }
    await this.#endpoint.close();
  }

  /** One round = one process (or one attachment) from its start to its end. */
  async #keep(): Promise<void> {
    const { attach, emit, host } = this.#options;
    while (!this.#isOver()) {
      emit({ kind: 'server.starting', subject: this.name, facts: attach === undefined ? {} : { attach: attach.written } });
      if (attach !== undefined) return await this.#watchAttached(attach.open);
      const launched = await this.#launch();
      if (launched !== undefined) await this.#watchProcess(launched);
      if (this.#isOver()) return;
      if (launched !== undefined) await this.#died(launched);
      if (!this.#launchDecides) await host.clock.sleep(relaunchPauseMs(this.#state), this.#ended.signal);
    }
  }

  async #watchAttached(open: () => Promise<Reach>): Promise<void> {
    const reach = await open();
    this.#reach = reach;
    try {
      await this.#watch(reach.baseUrl, this.#ended.signal);
    } finally {
      await reach.close();
    }
  }

  /** undefined: it could not be started again, which counts as a death. The first start must not fail. */
  async #launch(): Promise<LaunchedProcess | undefined> {
    this.#launching = this.#options.launch?.();
    try {
      this.#process = await this.#launching;
      this.#reach = this.#process?.reach;
      return this.#process;
    } catch (thrown) {
      if (!this.#wasReady || this.#launchDecides) throw thrown;
      this.#observe({ kind: 'exited', how: thrown instanceof Error ? thrown.message : String(thrown) });
      return undefined;
    } finally {
      this.#launching = undefined;
    }
  }

  async #watchProcess(launched: LaunchedProcess): Promise<void> {
    const { clock } = this.#options.host;
    const over = new AbortController();
    void launched.exited.then(() => over.abort());
    const round = AbortSignal.any([over.signal, this.#ended.signal]);
    const limit = this.#launchDecides ? undefined : openTimeLimit(clock, this.#options.patienceMs + LOOK_FIRST_MS, round);
    const baseUrl = await launched.listening(limit?.signal ?? round);
    limit?.close();
    if (baseUrl !== undefined) await this.#watch(baseUrl, round);
    else if (!round.aborted) this.#notReady('it does not listen');
  }

  /** Looks until the signal says that the process is over; only a server that is not ready is looked at. */
  async #watch(baseUrl: string, signal: AbortSignal): Promise<void> {
    const { host, headers } = this.#options;
    const { clock } = host;
    const client = host.openHttp({ baseUrl, connections: 4, headers, isDirect: isDirect(this.#options) });
    const control = { client, clock, signal };
    let pauseMs = LOOK_FIRST_MS;
    try {
      while (!signal.aborted && !this.#isOver()) {
        if (this.#state.kind === 'ready') {
          await this.#change(signal);
          pauseMs = LOOK_FIRST_MS;
          continue;
        }
        await this.#look(baseUrl, control);
        if (signal.aborted || this.#isOver()) break;
        this.#noteLook();
        if (this.endpoint !== undefined) continue;
        await clock.sleep(pauseMs, signal);
        pauseMs = Math.min(LOOK_LONGEST_MS, pauseMs * 1.5);
      }
    } finally {
      if (this.#endpoint.current?.control !== control.client) await control.client.close();
    }
  }

  async #look(baseUrl: string, control: Control): Promise<void> {
    const look = this.#unlessHeldBack(await lookAtHealth(control, this.#options.dialect, this.name));
    // What it is not asked for any more, its answer does not tell.
    if (control.signal.aborted || this.#isOver()) return;
    if (look.ready) return this.#take(await this.#endpoint.renew(control, { baseUrl, reach: this.#reach }));
    if (look.isConfiguration && !this.#wasReady) throw wrongCertificate(this.name, baseUrl, look.seen);
    // Its machine forwards nothing to it: what was seen is no word of the server.
    const refused = this.#reach?.refusal();
    if (refused !== undefined) throw refused;
    this.#notReady(this.#reach?.isOpen() === false ? NO_WAY : look.seen);
  }

  #unlessHeldBack(look: Look): Look {
    const seen = this.#options.attach?.heldBack?.() ?? '';
    return look.ready && seen !== '' ? { ...look, ready: false, seen } : look;
  }

  #take(renewal: Renewal): void {
    if (renewal.kind === 'not-ready') this.#notReady(renewal.seen);
    if (renewal.kind !== 'ready') return;
    this.#wasReady = true;
    this.#lastSeen = '';
    this.#observe({ kind: 'healthy' });
  }

  async #died(launched: LaunchedProcess): Promise<void> {
    const how = await launched.exited;
    this.#process = undefined;
    await this.#endpoint.close();
    this.#options.emit({ kind: 'server.lost', subject: this.name, facts: { pid: launched.pid, how } });
    this.#evidence = await lastLogLines(launched.logPath, 5);
    if (!this.#wasReady && !this.#launchDecides) throw didNotStart(this.name, how, { ...launched, evidence: this.#evidence });
    this.#observe({ kind: 'exited', how });
  }

  /** Says what is seen when it changes, so that waiting is never silent. */
  #notReady(seen: string): void {
    if (seen !== this.#lastSeen)
      this.#options.emit({ kind: 'server.waiting', subject: this.name, facts: { seen, ...this.#waitsAtMost() } });
    this.#lastSeen = seen;
    this.#observe({ kind: 'not-ready', seen });
  }

  #observe(seen: ServerObservation): void {
    const { host, patienceMs } = this.#options;
    const before = this.#state;
    const bounds = this.#launchDecides ? NO_BOUNDS : { patienceMs, mostDeaths: MOST_DEATHS };
    this.#state = nextServerState(before, seen, { nowMs: host.clock.elapsed(), ...bounds });
    if (this.#state === before) return;
    if (this.#state.kind === 'failed')
      this.#failure ??= gaveUp({
        name: this.name,
        attach: this.#options.attach?.written,
        because: this.#state.because,
        wasReady: this.#wasReady,
        evidence: this.#evidence,
      });
    if (before.kind === 'ready' && this.#state.kind === 'suspect')
      this.#options.emit({ kind: 'server.lost', subject: this.name, facts: { how: seen.kind } });
    this.#tellChange();
  }

  /** A launch is waited for as long as it makes progress. */
  #waitsAtMost(): { readonly patienceMs?: number } {
    return this.#launchDecides ? {} : { patienceMs: this.#options.patienceMs };
  }

  get #launchDecides(): boolean {
    return this.#options.afterDeath === 'launch';
  }

  #fail(error: AerieError): void {
    this.#failure ??= error;
    this.#state = { kind: 'failed', because: error.message };
    this.#tellChange();
  }

  #noteLook(): void {
    if (this.#wasLookedAt) return;
    this.#wasLookedAt = true;
    this.#tellChange();
  }

  #tellChange(): void {
    this.#wake?.();
    for (const listener of this.#listeners) listener();
  }

  /** Resolves at the next change of state, or when the signal aborts; leaves no listener behind. */
  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        this.#wake = undefined;
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#wake = wake;
      signal.addEventListener('abort', wake);
      if (signal.aborted) wake();
    });
  }

  #isOver(): boolean {
    return this.#state.kind === 'failed' || this.#state.kind === 'stopped';
  }
}

/** To what was launched the way is our own, on another node of Slurm too: no proxy of the environment stands on it. */
function isDirect({ attach }: Pick<KeptServerOptions, 'attach'>): boolean {
  return attach === undefined || attach.isDirect === true;
}
