/** What the launches of one server need from outside. Pure types. */
import type { Emit } from '../../base/events.ts';
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import type { Plan } from '../../capacity/plan-launch.ts';
import type { LookInput } from '../../diagnosis/live/judge-look.ts';
import type { Dialect } from '../../engine/dialect.ts';
import type { Host } from '../../host/host.ts';
import type { Machine } from '../../machine/machine.ts';
import type { PolicyRule } from '../../spec/run.ts';
import type { Env, Flags, RecoveryBasis, RecoveryLimits } from '../recovery/recovery.ts';
import type { LaunchPaths, LaunchPlace } from './begin-launch.ts';
import type { BookShelf, LaunchRecord } from './launch-book.ts';
import type { LogMirror } from './mirror-log.ts';

export interface LauncherOptions {
  readonly name: string;
  readonly engine: PlannedEngine;
  readonly dialect: Dialect;
  readonly machine: Machine;
  /** The machine that this one is a container of: who holds GPU memory is asked there, and ended there if it is named. */
  readonly outer?: Machine;
  readonly host: Host;
  readonly emit: Emit;
  readonly shelf: BookShelf;
  readonly place: LaunchPlace;
  /** Asked before each launch: behind ssh the home folder is known only there. */
  readonly paths: () => Promise<LaunchPaths>;
  /** As the run file has them. */
  readonly given: Flags;
  /** As it is told: secrets by name. */
  readonly env: Env;
  /** What the names of secrets stand for; goes to the process and nowhere else. */
  readonly values: Env;
  readonly headers: Readonly<Record<string, string>>;
  /** Rules in force now. */
  readonly policy: () => readonly PolicyRule[];
  /** Throws `policy.forbids` where flags would break a rule. */
  readonly policyRefuses: (flags: Flags) => void;
  /** '' = not known. */
  readonly version: () => string;
  /** What the arithmetic says of flags; undefined where the model or the GPU is not known. */
  readonly plan: (flags: Flags) => Plan | undefined;
  /** Where the log of a launch elsewhere is kept here; left out, or undefined: nowhere. */
  readonly mirrorOf?: (record: LaunchRecord) => LogMirror | undefined;
  readonly checkRemedy?: LookInput['checkRemedy'];
  readonly basis: () => RecoveryBasis | undefined;
  readonly limits: () => RecoveryLimits;
  readonly asked: () => { readonly inFlight: number; readonly answered: number };
  /** How long memory that others hold is waited for. */
  readonly patienceMs: number;
  /** Given on the command line: this holder of GPU memory may be ended, whoever started it. */
  readonly killHolder?: number;
  /** A rehearsal: the launch plays a model that need not be there. */
  readonly isPlayed?: boolean;
  /** The worker ends. */
  readonly signal: AbortSignal;
}
