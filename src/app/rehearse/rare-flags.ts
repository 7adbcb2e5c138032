/** Flags that an engine has and its lookalike does not: left out of a rehearsal and said, instead of being taken for mistakes. */
import { parseHelpFlags, standingOf } from '../../engine/help-flags.ts';
import { findNearest } from '../../spec/nearest.ts';
import type { ServerSpec } from '../../spec/run.ts';

/** Names as written. What is nearly a flag that is known is a slip, and stays: the launch will be refused for it, as the real one would. */
export function findRareFlags({ engine, flags }: Pick<ServerSpec, 'engine' | 'flags'>, help: string): string[] {
  const known = parseHelpFlags(help);
  if (known.size === 0) return [];
  return Object.keys(flags).filter((name) => {
    const bare = name.replace(/^-+/, '');
    return standingOf(engine, bare, known) === 'unknown' && findNearest(bare, [...known]) === undefined;
  });
}
