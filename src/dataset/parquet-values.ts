/**
 * What the Parquet reader gives → plain JSON values. Pure. A key whose value is null is left out of a struct: Parquet gives
 * every row every key of the column, so an absent key and a null one cannot be told apart; in a list null stays.
 */

/** Stands for text that is not UTF-8. */
export const BAD_TEXT = Symbol('not UTF-8');

export function plainValue(value: unknown): unknown {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'object' || value === null) return value ?? null;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (Array.isArray(value)) return value.map(plainValue);
  if (ArrayBuffer.isView(value))
    return value instanceof Uint8Array ? '' : Array.from(value as unknown as ArrayLike<unknown>, plainValue);
  const entries = Object.entries(value).flatMap(([key, below]) => {
    const plain = plainValue(below);
    return plain === null ? [] : [[key, plain] as const];
  });
  return Object.fromEntries(entries);
}

export function holdsBadText(value: unknown): boolean {
  if (value === BAD_TEXT) return true;
  if (typeof value !== 'object' || value === null) return false;
  return Object.values(value).some(holdsBadText);
}
