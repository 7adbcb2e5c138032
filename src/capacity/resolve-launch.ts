/**
 * Flags as people write them, a model and a GPU → the launch as the engine of that version would resolve it. Pure.
 * Promises: what is assumed, defaulted or rewritten is said in `notes`; what the engine would refuse is in `refusals`.
 */
import type { FlagValue, ParsedFlags } from '../engine/launch-flags.ts';
import type { EngineLaunch, PlannedEngine } from './engine-launch.ts';
import type { Gpu } from './gpu.ts';
import type { ModelShape } from './model-shape.ts';
import { resolveSglangLaunch } from './resolve-sglang.ts';
import { resolveVllmLaunch } from './resolve-vllm.ts';

export interface LaunchQuestion {
  readonly engine: PlannedEngine;
  /** '' = not known: the newest one covered is assumed. */
  readonly version: string;
  readonly flags: ParsedFlags;
  readonly shape: ModelShape;
  readonly gpu: Gpu;
}

/** The newest versions that the formulas were checked against. */
export const NEWEST: Readonly<Record<PlannedEngine, string>> = { sglang: '0.5.18', vllm: '0.21.0' };

export function resolveLaunch(question: LaunchQuestion): EngineLaunch {
  const isAssumed = !/^v?\d+\.\d+/.test(question.version.trim());
  const version = isAssumed ? NEWEST[question.engine] : question.version.trim().replace(/^v/, '');
  const known = { ...question, version };
  const launch = question.engine === 'sglang' ? resolveSglangLaunch(known) : resolveVllmLaunch(known);
  const name = question.engine === 'sglang' ? 'SGLang' : 'vLLM';
  const notes = isAssumed ? [`no version of ${name} was given: ${version} is assumed`] : [];
  return { ...launch, isVersionAssumed: isAssumed, notes: [...notes, ...launch.notes] };
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
