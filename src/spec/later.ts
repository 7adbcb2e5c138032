/**
 * Words of the run file that a later version will understand. A person who read about them in the design is told so,
 * and is not sent to a key that merely looks alike.
 */
import type { Path } from './problem.ts';

const LATER_KEYS: Readonly<Record<string, readonly string[]>> = {
  partitions: ['weight'],
};

const LATER_VALUES: Readonly<Record<string, readonly string[]>> = {};

export function isLaterKey(parent: Path, key: string): boolean {
  return (LATER_KEYS[String(parent[0] ?? '')] ?? []).includes(key);
}

export function isLaterValue(key: string, value: unknown): boolean {
  return typeof value === 'string' && Object.hasOwn(LATER_VALUES, key) && (LATER_VALUES[key] ?? []).includes(value);
}
