/** One look at a server that lives: its log so far, its process, its port, its counters. Pure; `judge-look.ts` judges. */
import type { EngineCounters } from '../../engine/counters.ts';
import type { Account } from '../account.ts';
import type { State, Verdict } from '../verdict.ts';

/** Four answers, never one of the body. */
export type Health =
  | { readonly kind: 'refused'; readonly afterMs: number }
  | { readonly kind: 'timeout'; readonly afterMs: number }
  | { readonly kind: 'http'; readonly status: number; readonly afterMs: number };

/** Signs of progress outside the log; undefined = could not be read. Figures are sums over the launch's processes. */
export interface ProcessSigns {
  readonly presence: 'running' | 'zombie' | 'gone' | 'unknown';
  readonly exitStatus: number | undefined;
  readonly residentBytes: number | undefined;
  readonly readBytes: number | undefined;
  readonly gpuUsedMiB: number | undefined;
  readonly compilers: number;
  /** Processes beside the main one: a front end whose schedulers are gone has none. undefined: it runs where they are not seen. */
  readonly children: number | undefined;
  /** How what it ran in ended, as docker tells it of a container. */
  readonly end?: { readonly says: string; readonly isOutOfMemory: boolean };
}

export interface Look {
  /** By the looker's clock, monotonic. */
  readonly atMs: number;
  /** `Account.ownBytes`: bytes of the log so far, without the lines that probes cause. See `logSigns`. */
  readonly logBytes: number;
  /** The line of `Account.lastProgress`; 0 = none yet. */
  readonly logProgress: number;
  readonly process: ProcessSigns | undefined;
  readonly health: Health | undefined;
  readonly counters: EngineCounters | undefined;
  /** Requests of Aerie's own that it has not answered, and how many it ever answered with tokens. Probes are none of them. */
  readonly asked: { readonly inFlight: number; readonly answered: number };
}

/** A live server's state; the first six are those that a log alone can show. */
export type LiveState = State | 'absent' | 'unresponsive' | 'stopped';

export interface LiveVerdict extends Omit<Verdict, 'state'> {
  readonly state: LiveState;
  /** What process, port and counters show, in words with figures: the evidence that stands in no log. */
  readonly signs: readonly string[];
  /** For how long nothing has moved that should have; 0 = it moves, or nothing should. */
  readonly stillForMs: number;
  /** How long this phase may stand still. */
  readonly limitMs: number;
}

/** What a look takes from the log. */
export function logSigns({ ownBytes, lastProgress }: Account): Pick<Look, 'logBytes' | 'logProgress'> {
  return { logBytes: ownBytes, logProgress: lastProgress?.line ?? 0 };
}
