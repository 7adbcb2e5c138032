/**
 * Keeps one server ready for a worker: starts it (embedded) or waits for it (attached), watches it, and starts it
 * again when it dies. What happens next is decided in `server-state.ts`; this file gathers facts and acts.
 *
 * On failure: `whenReady` rejects with an AerieError that carries the last log lines; nothing here touches records.
 */
import { AerieError } from '../base/errors.ts';
import type { Emit } from '../base/events.ts';
import type { Dialect, ServerFacts } from '../engine/dialect.ts';
import type { Host } from '../host/host.ts';
import type { HttpClient } from '../host/http.ts';
import { type Endpoint, lookAtHealth, readFacts } from './endpoint.ts';
import { type LaunchedProcess, lastLogLines } from './launch-embedded.ts';
import { nextServerState, type ServerObservation, type ServerState } from './server-state.ts';

export interface KeptServerOptions {
  readonly name: string;
  readonly dialect: Dialect;
  /** Starts the process; left out where Aerie only attaches. */
  readonly launch?: () => Promise<LaunchedProcess>;
  /** Base URL of an attached server. */
  readonly attach?: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  /** How long the server may be away before the worker gives up. */
  readonly patienceMs: number;
  /** Checks what the server really is, records the launch, returns its id. May throw an AerieError: then the server has failed. */
  readonly admit: (facts: ServerFacts, baseUrl: string) => number;
  /** Told each time a new endpoint is there. */
  readonly onReady: (endpoint: Endpoint) => void;
  readonly host: Host;
  readonly emit: Emit;
}

/** Between two looks at a server that is not ready: fast at first, because the embedded engine loads in a second. */
const LOOK_FIRST_MS = 100;
const LOOK_LONGEST_MS = 5_000;
/** SIGTERM to SIGKILL: the embedded engine ends within a second. */
const STOP_GRACE_MS = 5_000;

export class KeptServer {
  readonly name: string;
  readonly #options: KeptServerOptions;
  readonly #ended = new AbortController();
  #state: ServerState;
  #endpoint: Endpoint | undefined;
  #process: LaunchedProcess | undefined;
  #failure: AerieError | undefined;
  #waiting: (() => void)[] = [];
  #lastSeen = '';
  #wasReady = false;
  #started = false;

  constructor(options: KeptServerOptions) {
    this.name = options.name;
    this.#options = options;
    this.#state = { kind: 'starting', sinceMs: options.host.clock.elapsed(), deaths: 0 };
  }

  /** The endpoint when requests may be sent now. */
  get endpoint(): Endpoint | undefined {
    return this.#state.kind === 'ready' ? this.#endpoint : undefined;
  }

  get failure(): AerieError | undefined {
    return this.#failure;
  }

  /** The process id of a launched server, for people who look for it. */
  get pid(): number | undefined {
    return this.#process?.process.pid;
  }

  /** Begins to keep the server; returns at once. A second call does nothing. */
  start(): void {
    if (this.#started) return;
    this.#started = true;
    void this.#keep().catch((thrown: unknown) => this.#fail(asAerieError(thrown, this.name)));
  }

  /** Resolves at the next change of state. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** A request to it was lost: send nothing more until its health has been seen. */
  suspect(): void {
    this.#observe({ kind: 'suspected' });
  }

  answered(): void {
    if (this.#state.kind === 'ready' && this.#state.deaths > 0) this.#observe({ kind: 'answered' });
  }

  /** Stops a launched server; leaves an attached one alone. */
  async stop(): Promise<void> {
    this.#observe({ kind: 'stopped' });
    this.#ended.abort();
    const launched = this.#process;
    if (launched !== undefined) {
      await launched.process.stop(STOP_GRACE_MS);
      this.#options.emit({ kind: 'server.stopped', subject: this.name, facts: { pid: launched.process.pid } });
    }
    await this.#closeClients();
  }

  /** One round = one process (or one attachment) from its start to its end. */
  async #keep(): Promise<void> {
    while (!this.#isOver()) {
      const { launch, attach } = this.#options;
      this.#options.emit({ kind: 'server.starting', subject: this.name, facts: attach === undefined ? {} : { attach } });
      this.#process = await launch?.();
      const over = new AbortController();
      void this.#process?.process.exited.then(() => over.abort());
      const round = AbortSignal.any([over.signal, this.#ended.signal]);
      const baseUrl = attach ?? (await this.#process?.listening(round));
      if (baseUrl !== undefined) await this.#watch(baseUrl, round);
      if (this.#isOver() || this.#process === undefined) return;
      await this.#died(this.#process);
    }
  }

  /** Looks until the signal says that the process is over; only a server that is not ready is looked at. */
  async #watch(baseUrl: string, round: AbortSignal): Promise<void> {
    const { dialect, host, headers } = this.#options;
    const control = host.openHttp({ baseUrl, connections: 4, headers });
    let pauseMs = LOOK_FIRST_MS;
    while (!round.aborted && !this.#isOver()) {
      if (this.#state.kind === 'ready') {
        await Promise.race([this.changed(), aborted(round)]);
        pauseMs = LOOK_FIRST_MS;
        continue;
      }
      const look = await lookAtHealth(control, dialect);
      if (round.aborted) break;
      if (look.ready) await this.#becomeReady(baseUrl, control);
      else this.#notReady(look.seen);
      if (this.endpoint !== undefined) continue;
      await host.clock.sleep(pauseMs, round);
      pauseMs = Math.min(LOOK_LONGEST_MS, pauseMs * 1.5);
    }
    if (this.#endpoint?.control !== control) await control.close();
  }

  async #becomeReady(baseUrl: string, control: HttpClient): Promise<void> {
    const { dialect, host, headers, connections, admit } = this.#options;
    if (this.#endpoint?.control !== control) {
      const facts = await readFacts(control, dialect, this.name);
      const launch = admit(facts, baseUrl);
      await this.#closeClients();
      const turns = host.openHttp({ baseUrl, connections, headers });
      this.#endpoint = { server: this.name, dialect, facts, launch, turns, control };
      this.#options.onReady(this.#endpoint);
      this.#options.emit({
        kind: 'server.ready',
        subject: this.name,
        facts: { baseUrl, launch, model: facts.model, contextTokens: facts.contextTokens },
      });
    }
    this.#wasReady = true;
    this.#lastSeen = '';
    this.#observe({ kind: 'healthy' });
  }

  async #died(launched: LaunchedProcess): Promise<void> {
    const exit = await launched.process.exited;
    const how = exit.signal === undefined ? `exit code ${exit.code}` : `signal ${exit.signal}`;
    const wasReady = this.#endpoint !== undefined;
    await this.#closeClients();
    this.#options.emit({ kind: 'server.lost', subject: this.name, facts: { pid: launched.process.pid, how } });
    if (!wasReady) {
      throw new AerieError('server.did-not-start', `${this.name} ended before it was ready: ${how}.`, {
        remedy: `Read ${launched.logPath}; nothing was lost, the same command resumes.`,
        evidence: await lastLogLines(launched.logPath, 5),
      });
    }
    this.#observe({ kind: 'exited', how });
  }

  /** Says what is seen when it changes, so that waiting is never silent. */
  #notReady(seen: string): void {
    if (seen !== this.#lastSeen)
      this.#options.emit({ kind: 'server.waiting', subject: this.name, facts: { seen, patienceMs: this.#options.patienceMs } });
    this.#lastSeen = seen;
    this.#observe({ kind: 'not-ready', seen });
  }

  #observe(seen: ServerObservation): void {
    const { host, patienceMs } = this.#options;
    const before = this.#state;
    this.#state = nextServerState(before, seen, { nowMs: host.clock.elapsed(), patienceMs });
    if (this.#state === before) return;
    if (this.#state.kind === 'failed')
      this.#failure ??= gaveUp(this.name, this.#options.attach, this.#state.because, this.#wasReady);
    if (before.kind === 'ready' && this.#state.kind === 'suspect')
      this.#options.emit({ kind: 'server.lost', subject: this.name, facts: { how: seen.kind } });
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #fail(error: AerieError): void {
    this.#failure ??= error;
    this.#state = { kind: 'failed', because: error.message };
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #isOver(): boolean {
    return this.#state.kind === 'failed' || this.#state.kind === 'stopped';
  }

  async #closeClients(): Promise<void> {
    const endpoint = this.#endpoint;
    this.#endpoint = undefined;
    await endpoint?.turns.close();
    await endpoint?.control.close();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function gaveUp(name: string, attach: string | undefined, because: string, wasReady: boolean): AerieError {
  if (!wasReady) {
    const where = attach === undefined ? '' : ` at ${attach}`;
    return new AerieError('server.unreachable', `${name}${where} never became ready: ${because}.`, {
      remedy: 'Start the server, or correct attach: in the run file. Nothing was lost; the same command resumes.',
      facts: attach === undefined ? {} : { attach },
    });
  }
  return new AerieError('server.gave-up', `${name} is given up: ${because}.`, {
    remedy: 'What is committed is safe. Look at the server, then run the same command again: it resumes.',
  });
}

function asAerieError(thrown: unknown, name: string): AerieError {
  if (thrown instanceof AerieError) return thrown;
  return new AerieError(
    'server.did-not-start',
    `${name} could not be started: ${thrown instanceof Error ? thrown.message : String(thrown)}.`,
    { remedy: 'Nothing was lost; the same command resumes.' },
    thrown,
  );
}
