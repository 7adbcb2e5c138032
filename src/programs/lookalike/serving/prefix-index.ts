/**
 * Which prompts begin alike: token ids → named segments, as the twin's prefix tree wants them. Pure but for what it remembers.
 *
 * A prompt is cut at 16, 32, 64 … 512 and then each 512 tokens; a piece is named by a hash of everything up to its end, so equal names
 * are equal beginnings. What ends before such a cut is not seen as shared: at most 511 tokens of a match are missed. A prompt that goes
 * on from an answer given here (the next turn) shares that whole conversation, to the token.
 */
import { ownKey, type Segment } from '../../../twin/load.ts';

/** vLLM's block: it shares nothing smaller. */
const FIRST_CUT = 16;
const LONGEST_PIECE = 512;
/** Conversations that are remembered; more than a pool of this size of model holds at once. */
const KEPT = 4096;

interface Remembered {
  readonly check: number;
  readonly tokens: number;
  readonly path: readonly Segment[];
}

export interface PrefixIndex {
  segmentsOf(promptIds: readonly number[]): Segment[];
  /** A request has ended with these ids behind its prompt. */
  remember(id: string, shared: readonly Segment[], ids: readonly number[]): void;
}

export function openPrefixIndex(): PrefixIndex {
  const ends = new Map<number, Remembered>();

  return {
    segmentsOf(promptIds) {
      const known = findLongest(ends, promptIds);
      const begun = known?.path ?? [];
      return [...begun, ...cutFrom(promptIds, totalOf(begun))];
    },
    remember(id, shared, ids) {
      const [first, check] = hashOf(ids);
      // The last token has no KV: nobody has computed what follows it.
      const own = ids.length - 1 - totalOf(shared);
      if (own <= 0) return;
      ends.delete(first);
      ends.set(first, { check, tokens: ids.length, path: [...shared, { key: ownKey(id), tokens: own }] });
      if (ends.size > KEPT) ends.delete(ends.keys().next().value ?? first);
    },
  };
}

function totalOf(segments: readonly Segment[]): number {
  return segments.reduce((sum, { tokens }) => sum + tokens, 0);
}

function findLongest(ends: ReadonlyMap<number, Remembered>, ids: readonly number[]): Remembered | undefined {
  if (ends.size === 0) return undefined;
  let found: Remembered | undefined;
  const hash = new RunningHash();
  for (const [at, id] of ids.entries()) {
    hash.add(id);
    const end = ends.get(hash.first);
    if (end !== undefined && end.check === hash.second && end.tokens === at + 1) found = end;
  }
  return found;
}

function cutFrom(ids: readonly number[], from: number): Segment[] {
  const segments: Segment[] = [];
  const hash = new RunningHash();
  let [begin, cut] = [from, from + FIRST_CUT];
  for (const [at, id] of ids.entries()) {
    hash.add(id);
    if (at + 1 !== cut) continue;
    segments.push({ key: `${hash.first}.${hash.second}`, tokens: cut - begin });
    begin = cut;
    cut += Math.min(cut - from, LONGEST_PIECE);
  }
  return segments;
}

function hashOf(ids: readonly number[]): [number, number] {
  const hash = new RunningHash();
  for (const id of ids) hash.add(id);
  return [hash.first, hash.second];
}

/** FNV-1a with two offsets: 64 bits, so that no two beginnings of one run are taken for each other. */
class RunningHash {
  first = 0x811c9dc5;
  second = 0x9747b28c;

  add(id: number): void {
    this.first = Math.imul(this.first ^ id, 0x01000193) >>> 0;
    this.second = Math.imul(this.second ^ (id + 0x9e37), 0x85ebca6b) >>> 0;
  }
}
