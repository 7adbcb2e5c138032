/** A test that proves a promise of `invariants.ts`: the id stands in its name, so a failure says which promise broke. */
import { test } from 'vitest';
import { INVARIANTS, type InvariantId } from './invariants.ts';

export function proves(id: InvariantId, name: string, body: () => Promise<void> | void, timeoutMs?: number): void {
  if (!Object.hasOwn(INVARIANTS, id)) throw new Error(`unknown invariant ${id}`);
  test(`[${id}] ${name}`, body, timeoutMs);
}
