/** What may follow when a launch has ended or hangs. Pure types; the decision is in `decide-recovery.ts`. */
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import type { Gpu } from '../../capacity/gpu.ts';
import type { ModelShape } from '../../capacity/model-shape.ts';
import type { MeasuredLaunch } from '../../capacity/plan-launch.ts';
import type { LiveState } from '../../diagnosis/live/look.ts';
import type { Verdict } from '../../diagnosis/verdict.ts';
import type { FlagValue, PolicyRule } from '../../spec/run.ts';

export type Flags = Readonly<Record<string, FlagValue>>;
export type Env = Readonly<Record<string, string>>;

/** One change to a launch: a flag as the engine spells it without dashes, or an environment variable. */
export interface LaunchChange {
  readonly what: 'flag' | 'env';
  readonly name: string;
  /** undefined = it was not given. */
  readonly from: FlagValue | undefined;
  /** undefined = it is left out. */
  readonly to: FlagValue | undefined;
  /** Why, with the numbers: for events and people. */
  readonly because: string;
}

/** One launch of a server and how it ended. */
export interface LaunchTry {
  readonly flags: Flags;
  readonly env: Env;
  /** Of its log alone, or of a look at it while it lived. */
  readonly verdict: Omit<Verdict, 'state'> & { readonly state: LiveState };
  /** It had been ready, and answered so many requests. */
  readonly wasReady: boolean;
  readonly answered: number;
  /** Epoch ms when it became ready; undefined = never, or not known. */
  readonly readyAt: number | undefined;
  readonly endedAt: number;
}

/** What the arithmetic says of a launch, per GPU. */
export interface PredictedLaunch {
  readonly poolTokens: number;
  readonly freeAfterGraphsGiB: number;
  /** The most that one full prefill chunk is likely to need; 0 where the engine sets it aside itself (vLLM). */
  readonly prefillNeedGiB: number;
}

/** What capacity needs to know; undefined where the model or the GPU is not known. */
export interface RecoveryBasis {
  readonly shape: ModelShape;
  readonly gpu: Gpu;
  /** Other launches of this model on these GPUs; those of the tries are taken from their verdicts. */
  readonly observations: readonly MeasuredLaunch[];
}

/** What the run needs of the server, and what its machine has. */
export interface RecoveryLimits {
  /** Requests that Aerie has in flight here: a cap below them would cost speed. */
  readonly inFlight?: number;
  /** Tokens of the longest request, prompt and answer: the pool and the context must hold it. */
  readonly longestRequestTokens?: number;
  /** Host memory in GB (decimal) that is free while the server is down. */
  readonly hostFreeGB?: number;
}

export interface RecoveryQuestion {
  readonly engine: PlannedEngine;
  /** '' = not known. */
  readonly version: string;
  /** Oldest first; the last one has just ended. */
  readonly tries: readonly LaunchTry[];
  readonly policy: readonly PolicyRule[];
  readonly basis?: RecoveryBasis | undefined;
  /** As the person wrote them. */
  readonly given: Flags;
  readonly limits?: RecoveryLimits;
}

export type RecoveryStep =
  | {
      readonly kind: 'relaunch';
      /** Empty: the same flags, because the cause was transient. Relative to the flags of the last try. */
      readonly changes: readonly LaunchChange[];
      readonly because: string;
      /** What the arithmetic says of the new launch; undefined where it cannot say. */
      readonly predicted: PredictedLaunch | undefined;
      readonly pauseMs: number;
      /** What was not taken, and why: the words of a rule, or the arithmetic. */
      readonly passedOver: readonly string[];
    }
  /** The same flags, but only once the GPU is as free as it was: someone else holds its memory, and no flag helps. */
  | { readonly kind: 'wait-for-memory'; readonly because: string; readonly remedy: string; readonly pauseMs: number }
  | {
      readonly kind: 'give-up';
      readonly because: string;
      readonly remedy: string;
      readonly passedOver: readonly string[];
    };
