/** Out of memory in a prefill of a server at work: the arithmetic decides that it comes, this says it as SGLang does. */
import type { Launching } from './launching.ts';
import { dieOfMemory } from './launching.ts';

/** A prefill of a mixture of experts allocates its copies for the experts, their products, and what is left, one after the other. */
const SHARES = [0.4, 0.4, 0.2];

/** `needGiB` in all, against what was left after capture: the first allocation that does not fit is the one that is named. */
export function dieAtWork(launching: Launching, needGiB: number): never {
  let free = launching.plan().prediction.freeAfterGraphsGiB;
  for (const share of SHARES) {
    const tried = share * needGiB;
    if (tried > free) return dieOfMemory(launching, tried, free);
    free -= tried;
  }
  return dieOfMemory(launching, needGiB, free);
}
