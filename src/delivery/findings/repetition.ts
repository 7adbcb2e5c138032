/**
 * Does an answer run in a loop: the same stretch of tokens again and again? Pure, one pass, on ids (no tokenizer needed).
 *
 * One period is followed at a time: the distance back to the last time that the newest eight ids occurred. It holds as long
 * as each id equals the one a period before; when it breaks, the newest eight ids name the next one. What is found is
 * truly periodic (a test checks it by hand); what repeats with a changing word between is not found.
 */

/** Fewer ids name a period too often by chance ("the", commas), more would miss nothing but cost the first turns of a loop. */
const GRAM = 8;
/** Twice is emphasis, three times is a chorus. */
export const LEAST_TIMES = 4;
/** A rule of dashes, an empty table or a row of zeros is shorter; a model in a loop goes on to its cap, hundreds of tokens. */
export const LEAST_TOKENS = 128;

export function hasLoop(ids: readonly number[]): boolean {
  if (ids.length < LEAST_TOKENS) return false;
  const lastSeen = new Map<number, number>();
  let period = 0;
  let held = 0; // ids in a row that equal the one a period before
  for (let at = 0; at < ids.length; at += 1) {
    if (period > 0 && ids[at] === ids[at - period]) held += 1;
    else {
      period = 0;
      held = 0;
    }
    if (at < GRAM - 1) continue;
    const gram = hashGram(ids, at);
    const before = lastSeen.get(gram);
    lastSeen.set(gram, at);
    if (period === 0 && before !== undefined && isSameGram(ids, before, at)) {
      period = at - before;
      held = GRAM;
    }
    if (period > 0 && held >= (LEAST_TIMES - 1) * period && held + period >= LEAST_TOKENS) return true;
  }
  return false;
}

function hashGram(ids: readonly number[], end: number): number {
  let hash = 0;
  for (let at = end - GRAM + 1; at <= end; at += 1) hash = (Math.imul(hash, 0x01000193) ^ (ids[at] ?? 0)) | 0;
  return hash;
}

function isSameGram(ids: readonly number[], one: number, other: number): boolean {
  for (let back = 0; back < GRAM; back += 1) if (ids[one - back] !== ids[other - back]) return false;
  return true;
}
