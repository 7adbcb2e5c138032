/** Untrusted JSON, looked into without believing it. Pure; nothing here throws. */

export function looseObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** The object that the text is, {} for anything else. */
export function parseLoose(text: string): Record<string, unknown> {
  try {
    return looseObject(JSON.parse(text));
  } catch {
    return {};
  }
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** No engine counts to this in one reply or holds as many tokens; and sums of a million counts below it are exact. */
const COUNTS_BELOW = 2 ** 31;

/** −1 for whatever is no count. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < COUNTS_BELOW ? value : -1;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A value in a sentence: short, whatever it is; a list or an object by its kind alone, because it may be nested without end. */
export function quoteLoose(value: unknown): string {
  if (value === undefined) return 'missing';
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'a list' : 'an object';
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 80)) : String(value);
}
