/** What `aerie probe` answers. Pure types. */
import type { AerieError } from '../../base/errors.ts';
import type { EffectiveKvType } from '../../diagnosis/effective-kv-type.ts';
import type { Health, LiveVerdict } from '../../diagnosis/live/look.ts';
import type { Activity, ProbeHypothesis } from '../../diagnosis/probe/evidence.ts';
import type { Evidence } from '../../diagnosis/verdict.ts';
import type { VerifiedLaunch } from '../../server/launch/verified-launch.ts';

export interface ProbeReport {
  /** How the argument was read: `run file run.yaml`, `ssh name gpu-box`. */
  readonly taken: string;
  readonly servers: readonly ProbedServer[];
  readonly machines: readonly ProbedMachine[];
  /** All are ready or serving and can be asked from here, and no rule is broken; no server at all is no. */
  readonly isWell: boolean;
  /** The first server that cannot be asked from here for a reason that waiting does not mend. */
  readonly refusal: AerieError | undefined;
  readonly tookMs: number;
}

export interface ProbedMachine {
  readonly name: string;
  /** One line each of its GPUs; empty = none were seen. */
  readonly gpus: readonly string[];
  /** What the kernel wrote of ended processes and GPU faults, the last lines. */
  readonly kernel: readonly string[];
  readonly unseen: readonly string[];
  /** Why nothing of it was seen; '' = it was looked at. */
  readonly because: string;
  readonly isAway: boolean;
}

/** What is known after the first seconds. */
export interface EarlyServer {
  readonly name: string;
  readonly machine: string;
  /** Where it answers; '' = not known. */
  readonly address: string;
  readonly engine: string;
  readonly process: ProbedProcess | undefined;
  readonly log: ProbedLog | undefined;
  /** undefined: no answer yet. */
  readonly health: ProbedHealth | undefined;
  /** What the log and the server say of its capacity, as far as they were read. */
  readonly capacity: ProbedCapacity;
}

export interface ProbedProcess {
  readonly pid: number;
  readonly command: string;
  readonly presence: 'running' | 'zombie' | 'gone' | 'unknown';
  readonly ageMs: number | undefined;
  readonly exitStatus: number | undefined;
  readonly residentBytes: number | undefined;
  readonly children: number;
  readonly container: string;
  /** How its container ended, in docker's words; '' = it has not, or is in none. */
  readonly end: string;
  readonly memory: { readonly usedBytes?: number; readonly limitBytes?: number; readonly oomKills?: number };
}

export interface ProbedLog {
  readonly path: string;
  readonly bytes: number;
  readonly read: number;
  /** Since it was written to. */
  readonly quietMs: number | undefined;
}

export interface ProbedHealth {
  readonly answer: Health;
  readonly because: string;
}

export interface ProbedCapacity {
  /** 0 = unknown. */
  readonly poolTokens: number;
  readonly contextTokens: number;
  readonly maxRunningRequests: number;
  /** GiB left on each GPU after graph capture. */
  readonly freeAfterGraphsGiB: number | undefined;
  readonly kvType: EffectiveKvType;
  /** Where the log and the server say different things. */
  readonly differs: readonly string[];
}

export interface ProbedServer extends EarlyServer {
  readonly verdict: LiveVerdict;
  readonly activity: Activity;
  readonly hypotheses: readonly ProbeHypothesis[];
  readonly errors: readonly Evidence[];
  /** Undefined where there is nothing to verify by: neither a log nor an account of the server. */
  readonly verified: VerifiedLaunch | undefined;
  readonly policy: readonly ProbedRule[];
  readonly unseen: readonly string[];
  readonly isReady: boolean;
  readonly isPolicyKept: boolean;
}

export interface ProbedRule {
  readonly rule: string;
  readonly kept: boolean;
  /** Not kept, and that is proven, or it is about the numerics and cannot be told. */
  readonly broken: boolean;
  readonly because: string;
  readonly decided: string;
}
