/** Durations as people write them in a file: a number and its unit, never a bare number. Pure. */

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, min: 60_000, h: 3_600_000 };

/** setTimeout takes a signed 32-bit number of milliseconds: 24 days. */
const LONGEST_MS = 2_147_483_647;

/** `90s` → 90,000; also `500ms`, `15m`, `15 min`, `1.5h`. undefined = not one of these, nothing at all, or above 24 days. */
export function parseDuration(text: string): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)\s*$/.exec(text);
  if (match === null) return undefined;
  const ms = Math.round(Number(match[1]) * (UNIT_MS[match[2] ?? ''] ?? Number.NaN));
  return ms >= 1 && ms <= LONGEST_MS ? ms : undefined;
}
