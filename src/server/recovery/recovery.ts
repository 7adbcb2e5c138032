/** What may follow when a launch has ended or hangs. Pure types; the decision is in `decide-recovery.ts`. */
import type { Verdict } from '../../diagnosis/verdict.ts';
import type { FlagValue } from '../../spec/run.ts';

export type Flags = Readonly<Record<string, FlagValue>>;

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
  readonly env: Readonly<Record<string, string>>;
  readonly verdict: Verdict;
  /** It had been ready, and answered so many requests. */
  readonly wasReady: boolean;
  readonly answered: number;
  readonly endedAt: number;
}

export type RecoveryStep =
  | {
      readonly kind: 'relaunch';
      /** Empty: the same flags, because the cause was transient. */
      readonly changes: readonly LaunchChange[];
      readonly because: string;
      /** What the arithmetic says of the new launch; undefined where it cannot say. */
      readonly predicted:
        | { readonly poolTokens: number; readonly freeAfterGraphsGiB: number; readonly prefillNeedGiB: number }
        | undefined;
      readonly pauseMs: number;
    }
  | { readonly kind: 'give-up'; readonly because: string; readonly remedy: string };
