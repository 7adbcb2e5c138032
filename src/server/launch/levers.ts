/** Which flags and variables differ between two launches, and what arithmetic can say of each. Pure. */
import { countBits, isSameType } from '../../base/element-type.ts';
import type { LaunchFlag, LaunchFlags } from '../../engine/launching.ts';

/**
 * pool: bytes of the KV pool. kv-type: bytes of a token in it. host-cache: prefixes in host memory, never a token of a running
 * request. other: its share of a gain follows from no formula.
 */
export type LeverKind = 'pool' | 'kv-type' | 'host-cache' | 'other';

export interface Lever {
  /** Without dashes, as the engine spells it; the name of a variable as it stands. */
  readonly name: string;
  readonly kind: LeverKind;
  readonly isVariable: boolean;
  /** undefined = not given. */
  readonly from: LaunchFlag | undefined;
  readonly to: LaunchFlag | undefined;
}

const KINDS: readonly (readonly [LeverKind, RegExp])[] = [
  ['pool', /^(mem-fraction-static|gpu-memory-utilization|max-total-tokens|num-gpu-blocks-override|kv-cache-memory(-bytes)?)$/],
  ['kv-type', /^kv-cache-dtype$/],
  ['host-cache', /^(enable-hierarchical-cache|hicache-.*|kv-offloading-.*|kv-transfer-config|swap-space|cpu-offload-kv.*)$/],
];
/** They name a server and change nothing of what it does. */
const NO_LEVER =
  /^(host|port|served-model-name|log-.*|api-key|admin-api-key|enable-metrics|show-time-cost|nccl-port|dist-init-addr)$/;

export interface Given {
  readonly flags: LaunchFlags;
  readonly env?: Readonly<Record<string, string>>;
}

export function findLevers(before: Given, after: Given): Lever[] {
  const flags = changed(byName(before.flags), byName(after.flags)).filter(([name]) => !NO_LEVER.test(name));
  const variables = changed(before.env ?? {}, after.env ?? {});
  return [
    ...flags.map(([name, from, to]) => ({ name, kind: kindOf(name), isVariable: false, from, to })),
    ...variables.map(([name, from, to]) => ({ name, kind: 'other' as const, isVariable: true, from, to })),
  ];
}

/** Flags with these levers as they were before. */
export function withoutLevers(flags: LaunchFlags, levers: readonly Lever[]): LaunchFlags {
  const names = new Set(levers.map(({ name }) => name));
  const kept = Object.entries(flags).filter(([written]) => !names.has(plainName(written)));
  const put = levers.flatMap(({ name, from, isVariable }) => (from === undefined || isVariable ? [] : [[name, from] as const]));
  return Object.fromEntries([...kept, ...put]);
}

export function sayValue(value: LaunchFlag | undefined): string {
  if (value === undefined) return 'not given';
  return Array.isArray(value) ? value.join(' ') : String(value);
}

function changed<T extends LaunchFlag>(before: Readonly<Record<string, T>>, after: Readonly<Record<string, T>>) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names.map((name) => [name, before[name], after[name]] as const).filter(([name, from, to]) => !isSame(name, from, to));
}

function isSame(name: string, from: LaunchFlag | undefined, to: LaunchFlag | undefined): boolean {
  if (from === undefined || to === undefined) return (from ?? false) === (to ?? false);
  const [one, other] = [sayValue(from), sayValue(to)];
  if (one === other) return true;
  if (name.endsWith('dtype') && countBits(one) !== undefined) return isSameType(one, other);
  return one.trim() !== '' && other.trim() !== '' && Number(one) === Number(other);
}

function byName(flags: LaunchFlags): LaunchFlags {
  return Object.fromEntries(Object.entries(flags).map(([written, value]) => [plainName(written), value]));
}

function plainName(written: string): string {
  return written.replace(/^-+/, '').replaceAll('_', '-');
}

function kindOf(name: string): LeverKind {
  return KINDS.find(([, pattern]) => pattern.test(name))?.[0] ?? 'other';
}
