/** Which known name somebody may have meant. Pure. */

/** Longer names are no misspelling of ours, and the distance costs the product of the lengths. */
const MOST_NAME_LENGTH = 40;

/** The known name with the fewest edits (capitals are free), when they are at most a third of its length; else undefined. */
export function nearestName(written: string, known: readonly string[]): string | undefined {
  if (written.length > MOST_NAME_LENGTH) return undefined;
  const best = known
    .map((name) => ({ name, edits: countEdits(written.toLowerCase(), name.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits)[0];
  return best !== undefined && best.edits <= Math.ceil(best.name.length / 3) ? best.name : undefined;
}

/** Levenshtein distance. */
function countEdits(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const swap = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
