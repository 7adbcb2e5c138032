/**
 * Changes to a launch: making, applying and naming them. Pure.
 * Promises: a flag keeps the spelling that the person gave it (`tp`, `tp-size` and `tensor-parallel-size` are one flag), and what
 * is not changed stays as it is.
 */

import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import { FLAG_TABLES } from '../../capacity/plan-launch.ts';
import { type FlagRow, findFlag, type ParsedFlags, parseFlagRecord } from '../../engine/launch-flags.ts';
import type { FlagValue } from '../../spec/run.ts';
import type { Env, Flags, LaunchChange } from './recovery.ts';

const ENGINES: readonly PlannedEngine[] = ['sglang', 'vllm'];

/** The row of the engine's table, undefined for a flag that it does not have. */
export function rowOf(engine: PlannedEngine, name: string): FlagRow | undefined {
  return findFlag(name, FLAG_TABLES[engine])?.row;
}

/** As the flag table spells it; a flag that no table has keeps its name, without dashes in front. */
export function canonicalName(engine: PlannedEngine, name: string): string {
  return rowOf(engine, name)?.name ?? bare(name);
}

/** How a flag is written in these flags, the last one where it is written twice; undefined where it is not given. */
export function findWritten(engine: PlannedEngine, flags: Flags, name: string): string | undefined {
  const wanted = canonicalName(engine, name);
  return Object.keys(flags).findLast((written) => canonicalName(engine, written) === wanted);
}

/** The value that a flag has here; undefined where it is not given. */
export function flagValue(engine: PlannedEngine, flags: Flags, name: string): FlagValue | undefined {
  const written = findWritten(engine, flags, name);
  return written === undefined ? undefined : flags[written];
}

/** A change of a flag under the spelling that it already has here. */
export function changeFlag(
  { engine, flags }: { readonly engine: PlannedEngine; readonly flags: Flags },
  name: string,
  to: FlagValue | undefined,
  because: string,
): LaunchChange {
  const written = findWritten(engine, flags, name);
  return { what: 'flag', name: written ?? name, from: written === undefined ? undefined : flags[written], to, because };
}

export function applyChanges(
  flags: Flags,
  env: Env,
  changes: readonly LaunchChange[],
): { readonly flags: Flags; readonly env: Env } {
  let changed: Record<string, FlagValue> = { ...flags };
  const variables: Record<string, string> = { ...env };
  for (const { what, name, to } of changes) {
    if (what === 'flag') changed = setFlag(changed, name, to);
    else if (to === undefined) delete variables[name];
    else variables[name] = String(to);
  }
  return { flags: changed, env: variables };
}

function setFlag(flags: Readonly<Record<string, FlagValue>>, name: string, to: FlagValue | undefined): Record<string, FlagValue> {
  const same = Object.keys(flags).filter((written) => isSameFlag(written, name));
  const kept = same.at(-1) ?? bare(name);
  // In its place where it was given; every other spelling of it goes.
  const entries = Object.entries(flags).flatMap(([written, value]): [string, FlagValue][] => {
    if (!same.includes(written)) return [[written, value]];
    return written === kept && to !== undefined ? [[written, to]] : [];
  });
  return Object.fromEntries(same.length > 0 || to === undefined ? entries : [...entries, [kept, to]]);
}

/** Whether two spellings mean one flag, of either engine. */
export function isSameFlag(one: string, other: string): boolean {
  if (bare(one) === bare(other)) return true;
  return ENGINES.some((engine) => {
    const row = rowOf(engine, one);
    return row !== undefined && row === rowOf(engine, other);
  });
}

/** For events and people: `mem-fraction-static 0.93 → 0.91`, `quantization fp8 → left out`. */
export function describeChange({ what, name, from, to }: LaunchChange): string {
  // What a variable held before may be a secret.
  const before = from === undefined ? (what === 'flag' ? 'default' : 'not set') : what === 'env' ? 'other value' : say(from);
  const after = to === undefined ? 'left out' : say(to);
  return `${name} ${before} → ${after}`;
}

function say(value: FlagValue): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  return Array.isArray(value) ? value.join(' ') : String(value);
}

/** What makes two launches one and the same: each flag under its own name, in whatever order and spelling, and the environment. */
export function launchKey(engine: PlannedEngine, flags: Flags, env: Env): string {
  const named = Object.entries(flags).map(([name, value]) => [canonicalName(engine, name), plain(value)]);
  return JSON.stringify([sorted(named), sorted(Object.entries(env))]);
}

function sorted(entries: readonly (readonly unknown[])[]): unknown[] {
  return [...new Map(entries.map((entry) => [String(entry[0]), entry])).values()].sort((a, b) =>
    String(a[0]) < String(b[0]) ? -1 : 1,
  );
}

function plain(value: FlagValue): string {
  return Array.isArray(value) ? value.join(' ') : String(value);
}

/** The flags as the arithmetic reads them. */
export function parseGiven(engine: PlannedEngine, flags: Flags): ParsedFlags {
  const record = Object.entries(flags).map(([name, value]): [string, string | number | boolean] => [
    name,
    typeof value === 'object' ? value.join(' ') : value,
  ]);
  return parseFlagRecord(Object.fromEntries(record), FLAG_TABLES[engine]);
}

function bare(name: string): string {
  return name.replace(/^-+/, '');
}
