/** Flags that no formula reads: most are the engine's own business, some are slips of the keyboard. Pure. */
import type { FlagTable } from '../../engine/launch-flags.ts';
import { findNearest } from '../../spec/nearest.ts';

/** A sentence for each flag that looks like a known one and is none. */
export function nearMisses(unread: readonly string[], { rows }: FlagTable): string[] {
  const known = rows.flatMap(({ name, aliases = [] }) => [name, ...aliases]).filter((name) => name.length > 3);
  return unread.flatMap((written) => {
    const name = (written.split(/[ =]/)[0] ?? '').replace(/^-+/, '');
    const near = findNearest(name, known);
    return near === undefined ? [] : [`--${name} is passed on as it stands; did you mean --${near}?`];
  });
}
