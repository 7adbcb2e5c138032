/**
 * What recovery and policy changed of a launch, kept for the next one, and laid over what the person writes. Pure.
 * Promises: an edit of the person wins over what recovery found for that flag; what recovery found for other flags stays; a change
 * made by a policy stays until the person writes another value, and then the person's value is what rules are asked about: it is never
 * overridden in silence.
 */
import { createHash } from 'node:crypto';
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import type { FlagValue } from '../../spec/run.ts';
import { applyChanges, describeChange, isSameFlag, launchKey } from './changes.ts';
import type { Env, Flags, LaunchChange } from './recovery.ts';

export interface KeptChange extends LaunchChange {
  readonly by: 'recovery' | 'policy';
  /** What the person had written for it when it was found; undefined = nothing. Never the value of a variable. */
  readonly written: FlagValue | undefined;
}

/** As the state file of a server holds it. */
export interface KeptChanges {
  /** Of the flags that the person had written. */
  readonly flagsHash: string;
  readonly changes: readonly KeptChange[];
}

export const NOTHING_KEPT: KeptChanges = { flagsHash: '', changes: [] };

export interface PlannedFlags {
  readonly flags: Flags;
  readonly env: Env;
  /** Against what the person wrote now. */
  readonly applied: readonly KeptChange[];
  readonly dropped: readonly { readonly change: KeptChange; readonly because: string }[];
}

/** Flags in whatever order and spelling have one hash. */
export function hashFlags(engine: PlannedEngine, flags: Flags): string {
  return createHash('sha256')
    .update(launchKey(engine, flags, {}))
    .digest('hex')
    .slice(0, 16);
}

/** What to launch with. `env` is the person's; a variable that the person sets is an edit too. */
export function planFlags({ given, env, kept }: { given: Flags; env: Env; kept: KeptChanges }): PlannedFlags {
  const applied: KeptChange[] = [];
  const dropped: { change: KeptChange; because: string }[] = [];
  for (const change of kept.changes) {
    const because = findEdit(change, given, env);
    if (because === '') applied.push(change.what === 'env' ? change : { ...change, from: writtenNow(change, given) });
    else dropped.push({ change, because });
  }
  return { ...applyChanges(given, env, applied), applied, dropped };
}

/** '' where the person has not touched it since. */
function findEdit(change: KeptChange, given: Flags, env: Env): string {
  if (change.what === 'env') return Object.hasOwn(env, change.name) ? `${change.name} is now set by the run file` : '';
  const now = writtenNow(change, given);
  if (isSame(now, change.written)) return '';
  // A line that was taken away proposes nothing: what a rule put there stays.
  if (now === undefined && change.by === 'policy') return '';
  const was = change.written === undefined ? 'nothing' : String(change.written);
  return `the run file says ${now === undefined ? 'nothing' : String(now)} for ${change.name} now, and said ${was} when ${describeChange(change)} was found`;
}

function writtenNow({ name }: KeptChange, given: Flags): FlagValue | undefined {
  const written = Object.keys(given).findLast((one) => isSameFlag(one, name));
  return written === undefined ? undefined : given[written];
}

function isSame(one: FlagValue | undefined, other: FlagValue | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

interface KeepInput {
  readonly engine: PlannedEngine;
  readonly kept: KeptChanges;
  /** What was changed now, against the launch before. */
  readonly changes: readonly LaunchChange[];
  readonly by: KeptChange['by'];
  readonly given: Flags;
}

/** The newest change of a flag is the one that is kept; one that leads back to what the person wrote is kept no longer. */
export function keepChanges({ engine, kept, changes, by, given }: KeepInput): KeptChanges {
  let all = [...kept.changes];
  for (const change of changes) {
    const isOfSame = (one: KeptChange) =>
      one.what === change.what && (change.what === 'env' ? one.name === change.name : isSameFlag(one.name, change.name));
    const before = all.find(isOfSame);
    const added: KeptChange = { ...change, by: before?.by === 'policy' ? 'policy' : by, written: undefined };
    const written = change.what === 'env' ? undefined : writtenNow(added, given);
    all = all.filter((one) => !isOfSame(one));
    const leadsBack = change.what === 'flag' && isSame(change.to, written);
    if (!leadsBack) all.push({ ...added, written, ...(change.what === 'flag' ? { from: written } : {}) });
  }
  return { flagsHash: hashFlags(engine, given), changes: all };
}
