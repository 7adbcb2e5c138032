/** Looking into a row: own keys only, whatever they are called. Pure; never throws. */
export type Row = Readonly<Record<string, unknown>>;

export function own(row: Row, key: string): unknown {
  return Object.hasOwn(row, key) ? row[key] : undefined;
}

/** `data.question`: a column of that very name, else a way into columns and entries of lists. */
export function valueAt(row: Row, path: string): unknown {
  if (Object.hasOwn(row, path)) return row[path];
  let value: unknown = row;
  for (const step of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Row)[step];
  }
  return value;
}

/** null, '', '[]', 'null', [] and {} all mean that the column is not used in this row. */
export function isPresent(value: unknown): boolean {
  if (value === undefined || value === null || value === false) return false;
  if (typeof value === 'string') return !['', '[]', '{}', 'null', 'None'].includes(value.trim());
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

export function isRecord(value: unknown): value is Row {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function nameType(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** Looks no deeper than it is asked about, so any value is safe to give. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((below) => isDeeperThan(below, levels - 1));
}
