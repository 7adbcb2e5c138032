/** Facts as people and logs give them (plain numbers, any subset) → facts with their rounding. Pure; unknown names are told. */
import type { Facts, Measured } from './facts.ts';
import { fromPrinted } from './intervals.ts';

const MEASURES = [
  'weightsGiBPerGpu',
  'freeBeforeLoadGiB',
  'freeAfterLoadGiB',
  'poolGiB',
  'graphsGiB',
  'freeAfterGraphsGiB',
  'totalGiB',
  'activationsGiB',
  'outsideTorchGiB',
] as const;
export const FACT_NAMES: readonly string[] = [...MEASURES, 'poolTokens'];

/** More than any GPU has, in GiB. */
const MOST_GIB = 4096;

export function readFacts(given: Readonly<Record<string, unknown>>): {
  readonly facts: Facts;
  readonly problems: readonly string[];
} {
  const facts: { -readonly [K in keyof Facts]: Facts[K] } = {};
  const problems: string[] = [];
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined) continue;
    const isNumber = typeof value === 'number' && Number.isFinite(value) && value > 0;
    const measure = MEASURES.find((one) => one === name);
    if (measure !== undefined && isNumber && value <= MOST_GIB) facts[measure] = fromPrinted(value) satisfies Measured;
    else if (name === 'poolTokens' && isNumber && Number.isSafeInteger(value)) facts.poolTokens = value;
    else if (FACT_NAMES.includes(name))
      problems.push(`${name} must be a number above 0${name === 'poolTokens' ? ', whole' : ' in GiB'}`);
    else problems.push(`${name.slice(0, 40)} is no fact; facts are ${FACT_NAMES.join(', ')}`);
  }
  return { facts, problems };
}
