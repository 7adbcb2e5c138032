/** Version numbers of engines, as far as decisions hang on them. Pure. */

/**
 * Whether `version` is `least` or later; undefined where it is no version. A suffix (`.post1`, `rc2`, `+cu128`, `.dev7`)
 * is passed over: an engine built between two releases is taken for the one it is named after.
 */
export function isAtLeast(version: string, least: readonly [number, number, number]): boolean | undefined {
  const found = /^v?(\d+)\.(\d+)(?:\.(\d+))?/.exec(version.trim());
  if (found === null) return undefined;
  for (const [at, needed] of least.entries()) {
    const has = Number(found[at + 1] ?? 0);
    if (has !== needed) return has > needed;
  }
  return true;
}
