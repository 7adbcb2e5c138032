/** Two launches that are compared, and what can be said of it. Pure types; `explain-change.ts` decides. */
import type { LaunchFlags } from '../../engine/launching.ts';
import type { GainExplained } from '../../twin/explain-gain.ts';
import type { Given, Lever } from './levers.ts';
import type { VerifiedLaunch } from './verified-launch.ts';

/** What was seen at work, over some minutes. */
export interface LoadSeen {
  readonly running: number;
  readonly queued: number;
  readonly inFlight: number;
  readonly tokensPerSecond: number;
}

export interface LaunchSeen extends Given {
  /** For sentences: `0.88 bf16`. */
  readonly name: string;
  readonly verified: {
    readonly kvType: Pick<VerifiedLaunch['kvType'], 'type' | 'bits'>;
    readonly poolTokens: number;
    readonly freeAfterGraphsGiB: number | undefined;
  };
  /** undefined = nothing was generated yet. */
  readonly load: LoadSeen | undefined;
}

export interface ChangeQuestion {
  readonly before: LaunchSeen;
  readonly after: LaunchSeen;
  /** The plan's pool for other flags, with the facts of these launches; left out where model or GPU are not known. */
  readonly predictPool?: (flags: LaunchFlags) => number | undefined;
}

export interface LeverEffect extends Lever {
  /** Its factor on the tokens of the pool; undefined = no formula gives one. */
  readonly poolFactor: number | undefined;
  readonly because: string;
}

export interface Separation {
  readonly flags: LaunchFlags;
  /** Variables to leave out or put back. */
  readonly env: Readonly<Record<string, string>>;
  readonly because: string;
}

export interface ChangeExplained {
  readonly levers: readonly LeverEffect[];
  /** Tokens of the pool, after over before = the two factors below; undefined where a pool or a type is not known. */
  readonly poolFactor: number | undefined;
  readonly dtypeFactor: number | undefined;
  readonly bytesFactor: number | undefined;
  /** Undefined where one of the two was not seen at work. */
  readonly gain: GainExplained | undefined;
  readonly clientLimited: readonly ('before' | 'after')[];
  /** What is left of the gain in running requests, and what it may be due to. */
  readonly confounded: { readonly factor: number; readonly isLowerBound: boolean; readonly among: readonly string[] } | undefined;
  readonly separate: Separation | undefined;
  readonly lines: readonly string[];
}
