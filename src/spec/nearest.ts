/**
 * Which known word did they mean? For unknown keys and values of the run file. Pure.
 * Promises: the same answer for the same words; undefined rather than a far-fetched guess.
 */

/** The known word nearest to `word`, or undefined where none is near enough to be what was meant. */
export function findNearest(word: string, known: readonly string[]): string | undefined {
  const plain = plainOf(word);
  let best: string | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const distance = countEdits(plain, plainOf(candidate));
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  // A third of the letters: `seqences` and `kv-typ` are found, while `cat` is no `limit`.
  const allowed = Math.max(1, Math.floor(Math.max(plain.length, plainOf(best ?? '').length) / 3));
  // A replaced word of one or two letters is another word, not a slip.
  return bestDistance <= allowed && bestDistance < plain.length ? best : undefined;
}

/** `maxTokens`, `max_tokens` and `MAX-TOKENS` are one slip: the spelling of word joints. */
function plainOf(word: string): string {
  // Keys of ours have at most 20 letters; a longer word is never near one, so its tail need not be looked at.
  return word.slice(0, 64).toLowerCase().replaceAll(/[-_ ]/g, '');
}

/** Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal string alignment). */
export function countEdits(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let edits = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, (last[j - 1] ?? 0) + same);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (swapped) edits = Math.min(edits, (beforeLast[j - 2] ?? 0) + 1);
      row.push(edits);
    }
    beforeLast = last;
    last = row;
  }
  return last[b.length] ?? 0;
}
