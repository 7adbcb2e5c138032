/**
 * How many cases each property is tried with. `AERIE_PROPERTY_SCALE=50` makes fifty times as many of every one, for a long
 * search; a set-up file of vitest, and the numbers for properties that say their own.
 */
import fc from 'fast-check';
import { vi } from 'vitest';

const SCALE = Math.max(1, Number(process.env['AERIE_PROPERTY_SCALE'] ?? 1) || 1);

/** fast-check's own number is 100. A test's 120 s are for the usual number. */
if (SCALE > 1) {
  fc.configureGlobal({ numRuns: 100 * SCALE });
  vi.setConfig({ testTimeout: 120_000 * SCALE });
}

export function runs(usual: number): number {
  return usual * SCALE;
}
