/**
 * The requests that decode together. All of them gain a token in each step, so nothing is counted per request and step: a
 * request is an origin on the common count of steps, and who finishes next is the top of a heap.
 */
import { LeafHeap } from './leaf-heap.ts';
import type { Sequence } from './sequence.ts';

interface Ending {
  readonly sequence: Sequence;
  readonly joinOrder: number;
  /** The step at which it has all its tokens; the heap's key. */
  touched: number;
}

export class Batch {
  readonly #pageTokens: number;
  readonly #members = new Set<Sequence>();
  readonly #endings = new LeafHeap<Ending>(
    ({ sequence, joinOrder }) => sequence.joinOrder === joinOrder && this.#members.has(sequence),
  );
  /** How many members have (KV tokens − steps) mod page at each remainder. */
  readonly #remainders: Int32Array;
  #steps = 0;
  #joins = 0;
  /** Σ (KV tokens − steps). */
  #offset = 0;

  constructor(pageTokens: number) {
    this.#pageTokens = pageTokens;
    this.#remainders = new Int32Array(pageTokens);
  }

  get size(): number {
    return this.#members.size;
  }

  /** In the order in which they joined. */
  get members(): Iterable<Sequence> {
    return this.#members;
  }

  /** KV tokens of all members. */
  get contextTokens(): number {
    return this.#offset + this.#members.size * this.#steps;
  }

  has(sequence: Sequence): boolean {
    return this.#members.has(sequence);
  }

  producedBy(sequence: Sequence): number {
    return this.#steps - sequence.origin;
  }

  /** The last generated token has no KV yet. */
  kvTokensOf(sequence: Sequence): number {
    return sequence.request.promptTokens + this.producedBy(sequence) - 1;
  }

  join(sequence: Sequence): void {
    sequence.origin = this.#steps - sequence.produced;
    sequence.joinOrder = this.#joins++;
    this.#members.add(sequence);
    this.#offset += this.#offsetOf(sequence);
    this.#count(sequence, 1);
    this.#endings.push({ sequence, joinOrder: sequence.joinOrder, touched: sequence.origin + sequence.outputTokens });
  }

  /** Leaves with `produced` brought up to date. */
  leave(sequence: Sequence): void {
    sequence.produced = this.producedBy(sequence);
    this.#members.delete(sequence);
    this.#offset -= this.#offsetOf(sequence);
    this.#count(sequence, -1);
  }

  /** Steps until the next one finishes; there is at least one member. */
  stepsToNextEnding(): number {
    const next = this.#endings.oldest();
    if (next === undefined) return 0;
    this.#endings.push(next);
    return next.touched - this.#steps;
  }

  advance(steps: number): void {
    this.#steps += steps;
  }

  /** Those that have all their tokens, in the order in which they joined. */
  finished(): Sequence[] {
    const done: Sequence[] = [];
    for (;;) {
      const next = this.#endings.oldest();
      if (next === undefined) break;
      if (next.touched > this.#steps) {
        this.#endings.push(next);
        break;
      }
      done.push(next.sequence);
    }
    return done.sort((a, b) => a.joinOrder - b.joinOrder);
  }

  /** Tokens of the pages that the next `steps` steps open. */
  pageTokensFor(steps: number): number {
    const page = this.#pageTokens;
    if (page === 1) return steps * this.#members.size;
    let opened = 0;
    for (let offset = 0; offset < page; offset++) {
      const count = this.#remainders[offset] ?? 0;
      if (count === 0) continue;
      const within = (((offset + this.#steps) % page) + page) % page;
      // Of the positions within … within + steps − 1, those that begin a page.
      opened += count * (Math.floor((within + steps - 1) / page) - Math.floor((within - 1) / page));
    }
    return opened * page;
  }

  #count(sequence: Sequence, change: 1 | -1): void {
    const page = this.#pageTokens;
    const at = ((this.#offsetOf(sequence) % page) + page) % page;
    this.#remainders[at] = (this.#remainders[at] ?? 0) + change;
  }

  #offsetOf(sequence: Sequence): number {
    return sequence.request.promptTokens - 1 - sequence.origin;
  }
}
