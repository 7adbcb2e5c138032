/** SGLang's `lpm` order: the longest prefix in the pool first; whoever shares a fresh prefix with a request ahead comes last. */
import type { KvPool } from './kv-pool.ts';
import { PrefixTree } from './prefix-tree.ts';
import type { Sequence } from './sequence.ts';
import { IN_BATCH_SHARED_TOKENS } from './server.ts';

export function orderByPrefix(waiting: readonly Sequence[], pool: KvPool, pageTokens: number): Sequence[] {
  const ahead = new PrefixTree({ pageTokens, evictWhole: true, hostTokens: 0 });
  const ranked = waiting.map((sequence) => {
    const matched = pool.match(sequence, true).poolTokens;
    return { sequence, matched, later: matched <= IN_BATCH_SHARED_TOKENS && isSharedAhead(sequence, ahead) };
  });
  return ranked.sort((a, b) => Number(a.later) - Number(b.later) || b.matched - a.matched).map(({ sequence }) => sequence);
}

/** One of several that begin alike computes the beginning; the others find it in the tree a round later. */
function isSharedAhead(sequence: Sequence, ahead: PrefixTree): boolean {
  const limit = sequence.wholePages(sequence.knownTokens - 1);
  const path = sequence.path(limit);
  if (ahead.match(path, limit, false).poolTokens >= IN_BATCH_SHARED_TOKENS) return true;
  ahead.insert(path, limit);
  return false;
}
