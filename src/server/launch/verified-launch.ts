/** What is asked of a verification, and what it says. Pure types; `verify-launch.ts` decides. */
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import type { Plan } from '../../capacity/plan-launch.ts';
import type { Interval } from '../../capacity/prediction.ts';
import type { EffectiveKvType } from '../../diagnosis/effective-kv-type.ts';
import type { LogFacts } from '../../diagnosis/log-facts.ts';
import type { ServerFacts } from '../../engine/dialect.ts';
import type { LaunchFlags } from '../../engine/launching.ts';
import type { LaunchClass, PolicyCheck } from '../../spec/policy.ts';
import type { PolicyRule } from '../../spec/run.ts';
import type { RewrittenFlag } from './compare-flags.ts';

export interface VerifyInput {
  readonly engine: PlannedEngine;
  /** The launch's own log, read whole; undefined where Aerie did not start the server. */
  readonly log: LogFacts | undefined;
  readonly server: ServerFacts;
  /** Made from the flags that the server was started with; undefined where model, GPU or flags are not known. */
  readonly plan: Plan | undefined;
  /** As sent: `effectiveFlags` of the dialect. */
  readonly flags: LaunchFlags;
  readonly policy: readonly PolicyRule[];
}

export interface VerifiedLaunch {
  readonly kvType: EffectiveKvType;
  /** Of one pool, as the engine prints it; 0 = unknown. */
  readonly poolTokens: number;
  /** Of all its pools together; 0 = unknown. */
  readonly serverTokens: number;
  /** 0 = unknown. */
  readonly contextTokens: number;
  readonly maxRunningRequests: number;
  readonly freeAfterGraphsGiB: number | undefined;
  readonly predicted: PredictedPool | undefined;
  readonly rewritten: readonly RewrittenFlag[];
  /** What the rules were asked about. */
  readonly launchClass: LaunchClass;
  readonly policy: readonly PolicyCheck[];
  readonly warnings: readonly string[];
}

export interface PredictedPool {
  readonly poolTokens: number;
  readonly range: Interval;
  /** What came, over what was predicted: 1.5 = one and a half percent more. */
  readonly differencePercent: number;
  readonly insideRange: boolean;
}

/** What was found, before it is judged. */
export type VerifiedFigures = Omit<VerifiedLaunch, 'launchClass' | 'policy' | 'warnings'>;
