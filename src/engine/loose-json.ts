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

/** −1 for whatever is no count. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : -1;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
