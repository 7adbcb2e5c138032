/** Numbers people write with a unit, and numbers people read. */

/** `20M` → 20,000,000; also `20k`, `1.5M`, `2G`, `20_000`, plain integers. Decimal, because tokens are not bytes. undefined = not one of these. */
export function parseTokens(text: string): number | undefined {
  const match = /^(\d[\d_]*(?:\.\d+)?)\s*([kKmMgGbB]?)$/.exec(text.trim());
  if (match === null) return undefined;
  const factor = { '': 1, k: 1e3, m: 1e6, g: 1e9, b: 1e9 }[(match[2] ?? '').toLowerCase()] ?? 1;
  const value = Number((match[1] ?? '').replaceAll('_', '')) * factor;
  return Number.isFinite(value) && Math.abs(value - Math.round(value)) < 1e-6 ? Math.round(value) : undefined;
}

/** 12,345 */
export function formatCount(value: number): string {
  return Math.round(value).toLocaleString('en-US');
}

/** 1,234 → `1.2k`, 20,000,000 → `20M`: for tables and progress, where two digits are enough. */
export function formatTokens(value: number): string {
  if (value < 10_000) return formatCount(value);
  for (const [size, unit] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const) {
    if (value >= size) return `${trimZero((value / size).toFixed(1))}${unit}`;
  }
  return formatCount(value);
}

/** Bytes in powers of 1,024. */
export function formatBytes(bytes: number): string {
  for (const [size, unit] of [
    [2 ** 30, 'GiB'],
    [2 ** 20, 'MiB'],
    [2 ** 10, 'KiB'],
  ] as const) {
    if (bytes >= size) return `${trimZero((bytes / size).toFixed(1))} ${unit}`;
  }
  return `${bytes} B`;
}

/** 4,000 → `4 s`, 125,000 → `2 min 5 s`, 7,300,000 → `2 h 2 min`. */
export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 === 0 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`;
  return minutes % 60 === 0 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function trimZero(text: string): string {
  return text.endsWith('.0') ? text.slice(0, -2) : text;
}
