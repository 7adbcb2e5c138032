/** What one probe has seen of one server, before it is judged. Pure data; nothing here says where it was seen from. */
import type { EngineCounters } from '../../engine/counters.ts';
import type { Account } from '../account.ts';
import type { DiagnoseOptions } from '../diagnose.ts';
import type { Health, ProcessSigns } from '../live/look.ts';

/** One of the two readings of a probe. */
export interface Reading {
  /** By the prober's clock, monotonic. */
  readonly atMs: number;
  readonly account: Account;
  readonly process: ProcessSigns | undefined;
  readonly counters: EngineCounters | undefined;
}

export interface SeenProcess {
  readonly pid: number;
  readonly command: string;
  /** How long ago it was started; undefined = not known. */
  readonly ageMs: number | undefined;
  /** Processes of its family in the kernel, which no signal ends. */
  readonly uninterruptible: readonly number[];
  readonly container: string;
}

export interface SeenLog {
  readonly path: string;
  /** Bytes of the file, and how many of them were read. */
  readonly bytes: number;
  readonly read: number;
  /** Milliseconds since it was last written to, by the clock of its machine; undefined = not known. */
  readonly quietMs: number | undefined;
}

/** A line of the kernel's own log, or of a memory controller. */
export interface KernelSign {
  readonly kind: 'oom' | 'xid';
  readonly text: string;
  /** It names a process of this server. */
  readonly isOurs: boolean;
}

export interface ProbeEvidence {
  readonly engine: 'sglang' | 'vllm' | undefined;
  /** The first reading and the last one; the same one twice is one. */
  readonly readings: readonly Reading[];
  readonly health: Health | undefined;
  /** It has told of itself: its model, its figures. */
  readonly isAccountTold: boolean;
  /** How long what only its scheduler can tell has been waited for, while its front end answered; 0 = it told. */
  readonly schedulerSilentMs: number;
  readonly log: SeenLog | undefined;
  /** What the clock of the log's machine shows, as the log's own times are read. */
  readonly logNow: number | undefined;
  readonly process: SeenProcess | undefined;
  readonly kernel: readonly KernelSign[];
  /** Processes that the memory limit of its group has ended; undefined = not known. */
  readonly groupOomKills: number | undefined;
  /** Ranks of an engine that nobody has as parent any more. */
  readonly orphans: readonly number[];
  /** Who listens on its port instead of it; '' = nobody, or not known. */
  readonly portHeldBy: string;
  /** Health checks that this probe has asked: each may be a token. */
  readonly ownChecks: number;
  readonly isAskedToEnd: boolean;
  readonly checkRemedy?: DiagnoseOptions['checkRemedy'];
}

export type HypothesisName = 'loading' | 'hung' | 'crashed' | 'busy';

export interface ProbeHypothesis {
  readonly name: HypothesisName;
  readonly for: readonly string[];
  readonly against: readonly string[];
}

export interface Activity {
  /** working: tokens move or requests run. probes: all that moves is asked by probes. idle: nobody asks. */
  readonly kind: 'working' | 'starting' | 'idle' | 'probes' | 'none' | 'unknown';
  readonly says: readonly string[];
  /** Between the two readings; undefined = not counted. */
  readonly generatedTokens: number | undefined;
  readonly promptTokens: number | undefined;
  readonly overMs: number;
  readonly running: number | undefined;
  readonly waiting: number | undefined;
  readonly lastWork: { readonly line: number; readonly text: string; readonly agoMs: number | undefined } | undefined;
}
