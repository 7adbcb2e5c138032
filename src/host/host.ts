/**
 * Everything outside the process that Aerie's logic may touch. Small on purpose: only clock and randomness are ever
 * replaced in tests; files, processes and HTTP are real there too.
 */

import type { HttpClient, HttpClientOptions } from './http.ts';
import type { ServerProcess, StartRequest } from './processes.ts';

export interface Clock {
  /** Epoch milliseconds, for records and people. */
  now(): number;
  /** Monotonic milliseconds, for deadlines and rates. */
  elapsed(): number;
  /** Resolves after `ms`, or at once when the signal aborts (it never rejects). */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** A number in [0, 1). */
export type Random = () => number;

export interface Host {
  readonly clock: Clock;
  readonly random: Random;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pid: number;
  startProcess(request: StartRequest): Promise<ServerProcess>;
  openHttp(options: HttpClientOptions): HttpClient;
}
