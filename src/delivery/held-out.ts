/**
 * Which prompts are held out, by their id alone. Pure.
 *
 * Promises: the same prompts in each re-run, in every partition and for every trainer; a larger share only adds to a smaller one.
 */
import { createHash } from 'node:crypto';

/** 48 bits: as many as a double holds exactly with room to spare, and far finer than any share. */
const RANGE = 2 ** 48;

export function isHeldOut(id: string, share: number): boolean {
  // The id is a hash already, but of other things too: a run could be made of the ids that begin alike.
  const draw = createHash('sha256').update(`held-out ${id}`).digest().readUIntBE(0, 6);
  return draw < share * RANGE;
}
