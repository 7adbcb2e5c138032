/**
 * The servers of a run, and which one takes the next request: of those that are ready, the one with the fewest in
 * flight. Also keeps how each run of requests has gone, which the retry decision needs to tell a sick server from a
 * poison prompt.
 */
import { AerieError } from '../base/errors.ts';
import type { OutcomeKind } from '../engine/dialect.ts';
import type { Endpoint } from '../server/endpoint.ts';
import type { KeptServer } from '../server/kept-server.ts';

export interface Standing {
  readonly failingPrompts: number;
  readonly refusalsInARow: number;
  readonly everCompleted: boolean;
}

export class Fleet {
  readonly #servers: readonly KeptServer[];
  readonly #inFlight = new Map<string, number>();
  readonly #failing = new Set<string>();
  #refusalsInARow = 0;
  #completed = 0;

  constructor(servers: readonly KeptServer[]) {
    this.#servers = servers;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#servers.map((server) => server.stop()));
  }

  /**
   * Waits for a ready server. The servers are started by the first request: a run with nothing left to do starts none.
   * Rejects when every server has failed, or with the signal's reason.
   */
  async choose(signal: AbortSignal): Promise<Endpoint> {
    for (const server of this.#servers) server.start();
    for (;;) {
      signal.throwIfAborted();
      const chosen = chooseServer(
        this.#servers.map((server) => ({ endpoint: server.endpoint, inFlight: this.#inFlight.get(server.name) ?? 0 })),
      );
      if (chosen !== undefined) return chosen;
      const failures = this.#servers.map((server) => server.failure).filter((failure) => failure !== undefined);
      if (failures.length === this.#servers.length) throw failures[0] ?? noServers();
      await Promise.race([...this.#servers.map((server) => server.changed()), abortOf(signal)]);
    }
  }

  sent(endpoint: Endpoint): void {
    this.#inFlight.set(endpoint.server, (this.#inFlight.get(endpoint.server) ?? 0) + 1);
  }

  ended(endpoint: Endpoint, prompt: string, outcome: OutcomeKind, deadline: boolean): void {
    this.#inFlight.set(endpoint.server, Math.max(0, (this.#inFlight.get(endpoint.server) ?? 0) - 1));
    const server = this.#servers.find(({ name }) => name === endpoint.server);
    switch (outcome) {
      case 'completed':
        this.#completed += 1;
        this.#refusalsInARow = 0;
        this.#failing.clear();
        server?.answered();
        return;
      case 'refused':
        this.#refusalsInARow += 1;
        return;
      case 'lost':
        if (!deadline && server?.endpoint === endpoint) server.suspect();
        this.#failing.add(prompt);
        return;
      case 'failed':
      case 'malformed':
        this.#failing.add(prompt);
        return;
      case 'overloaded':
      case 'unauthorised':
      case 'abandoned':
        return;
    }
  }

  standing(): Standing {
    return { failingPrompts: this.#failing.size, refusalsInARow: this.#refusalsInARow, everCompleted: this.#completed > 0 };
  }
}

/** Pure: of the ready servers the one with the fewest requests in flight, the first of equals. */
export function chooseServer(
  servers: readonly { readonly endpoint: Endpoint | undefined; readonly inFlight: number }[],
): Endpoint | undefined {
  let best: { endpoint: Endpoint; inFlight: number } | undefined;
  for (const { endpoint, inFlight } of servers) {
    if (endpoint !== undefined && (best === undefined || inFlight < best.inFlight)) best = { endpoint, inFlight };
  }
  return best?.endpoint;
}

function noServers(): AerieError {
  return new AerieError('server.unreachable', 'The run has no server.', { remedy: 'Add one under servers: in the run file.' });
}

function abortOf(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
