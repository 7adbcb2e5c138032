/**
 * Which tokens of the target's vocabulary the drafter gets: the most frequent ones among the supervised tokens. Pure.
 *
 * Promises: the same counts give the same map, whatever the order of the records (ties go to the smaller id, and ids that never occur
 * fill up what is left, smallest first); `hash` names counts, sizes and therefore the map, so that a stale one is recognised.
 */
import { createHash } from 'node:crypto';

/** Token id → how often the model wrote it. */
export type TokenCounts = ReadonlyMap<number, number>;

export interface DraftVocabulary {
  /** Draft id → target id minus draft id. */
  readonly d2t: readonly number[];
  /** Target id → is it in the draft vocabulary? */
  readonly t2d: readonly boolean[];
  /** Supervised tokens that the draft vocabulary holds, of all of them; 0 where there are none. */
  readonly coverage: number;
}

/** Expects `draftSize` ≤ `targetSize`, and every counted id below `targetSize`. */
export function chooseDraftVocabulary(counts: TokenCounts, draftSize: number, targetSize: number): DraftVocabulary {
  const byFrequency = [...counts.keys()].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0) || a - b);
  const chosen = new Set(byFrequency.slice(0, draftSize));
  for (let id = 0; chosen.size < draftSize; id += 1) chosen.add(id);
  const sorted = [...chosen].sort((a, b) => a - b);
  return {
    d2t: sorted.map((id, at) => id - at),
    t2d: Array.from({ length: targetSize }, (_, id) => chosen.has(id)),
    coverage: shareOf(sorted, counts),
  };
}

function shareOf(ids: readonly number[], counts: TokenCounts): number {
  const all = totalOf(counts);
  const held = ids.reduce((sum, id) => sum + (counts.get(id) ?? 0), 0);
  return all === 0 ? 0 : held / all;
}

export function totalOf(counts: TokenCounts): number {
  let total = 0;
  for (const count of counts.values()) total += count;
  return total;
}

/** In the order of the ids: the same counts are the same bytes. */
export function sortCounts(counts: TokenCounts): [id: number, count: number][] {
  return [...counts].sort(([a], [b]) => a - b);
}

/** sha256 over everything the map follows from. 0 = no map, or the size of the vocabulary is not known. */
export function hashCounts(counts: TokenCounts, draftSize: number, targetSize: number): string {
  const hash = createHash('sha256').update(`aerie token counts 1\n${draftSize}\n${targetSize}\n`);
  for (const [id, count] of sortCounts(counts)) hash.update(`${id} ${count}\n`);
  return hash.digest('hex');
}
