/** What a launch is resolved from, and typed access to its flags. Pure. */
import type { FlagValue, ParsedFlags } from '../engine/launch-flags.ts';
import type { PlannedEngine } from './engine-launch.ts';
import type { Gpu } from './gpu.ts';
import type { ModelShape } from './model-shape.ts';

export interface LaunchQuestion {
  readonly engine: PlannedEngine;
  /** '' = not known: the newest one covered is assumed. */
  readonly version: string;
  readonly flags: ParsedFlags;
  readonly shape: ModelShape;
  readonly gpu: Gpu;
}

/** Typed access to parsed flags: a value of another kind counts as not given. */
export interface FlagReader {
  count(name: string, otherwise: number): number;
  text(name: string): string;
  isOn(name: string): boolean;
  isGiven(name: string): boolean;
  list(name: string): readonly number[];
}

export function readFlags(values: Readonly<Record<string, FlagValue>>): FlagReader {
  const at = (name: string) => (Object.hasOwn(values, name) ? values[name] : undefined);
  return {
    count(name, otherwise) {
      const value = at(name);
      return typeof value === 'number' ? value : otherwise;
    },
    text(name) {
      const value = at(name);
      return typeof value === 'string' ? value : '';
    },
    isOn: (name) => at(name) === true,
    isGiven: (name) => at(name) !== undefined,
    list(name) {
      const value = at(name);
      return Array.isArray(value) ? (value as readonly number[]) : [];
    },
  };
}
