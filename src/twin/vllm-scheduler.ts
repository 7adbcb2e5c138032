/**
 * vLLM V1's scheduling: one token budget per step, running requests first, then prompts in chunks in the same step.
 *
 * Nothing is reserved for what will be generated: a request is admitted when the blocks of its prompt fit. So the pool fills
 * up, and when a step finds no block the request that came last is preempted: back to the front of the queue, to be computed
 * again (what it had may still be found in the cache). Simplification: all blocks of a prompt are taken when it is admitted.
 */
import type { Piece, Plan, Scheduler } from './scheduler.ts';
import type { Sequence } from './sequence.ts';
import type { VllmRules } from './server.ts';
import type { Scheduled } from './sglang-scheduler.ts';

const NOBODY: readonly never[] = [];

export class VllmScheduler implements Scheduler {
  readonly #on: Scheduled;
  readonly #rules: VllmRules;
  readonly mixes = true;
  readonly ratio = 0;
  #partial: Sequence | undefined;

  constructor(on: Scheduled, rules: VllmRules) {
    this.#on = on;
    this.#rules = rules;
  }

  get partial(): Sequence | undefined {
    return this.#partial;
  }

  dropPartial(): void {
    this.#partial = undefined;
  }

  takenByPartial(): number {
    return this.#partial?.knownTokens ?? 0;
  }

  memberLeft(): void {}

  stepped(): void {}

  becameIdle(): void {}

  plan(): Plan {
    const retracted = this.#makeRoom();
    const pieces = this.#schedule(retracted.length === 0);
    return { pieces, retracted, failed: NOBODY };
  }

  #makeRoom(): readonly Sequence[] {
    const { pool, batch, waiting } = this.#on;
    if (batch.pageTokensFor(1) <= pool.available) return NOBODY;
    const order = [...batch.members];
    const retracted: Sequence[] = [];
    while (batch.pageTokensFor(1) > pool.available) {
      const victim = this.#partial ?? order.pop();
      if (victim === undefined) break;
      if (victim === this.#partial) {
        pool.release(victim, { kvTokens: victim.filled, takenTokens: victim.knownTokens, keep: true });
        this.#partial = undefined;
      } else {
        const kvTokens = batch.kvTokensOf(victim);
        batch.leave(victim);
        pool.release(victim, { kvTokens, takenTokens: kvTokens, keep: true });
      }
      retracted.push(victim);
      waiting.pushFront(victim);
    }
    return retracted;
  }

  #schedule(mayAdmit: boolean): readonly Piece[] {
    const { server, batch, waiting } = this.#on;
    if (this.#partial === undefined && waiting.length === 0) return NOBODY;
    const pieces: Piece[] = [];
    let budget = this.#rules.maxBatchedTokens - batch.size;
    const slots = server.maxRunningRequests - batch.size;
    if (this.#partial !== undefined && budget > 0) {
      budget -= this.#add(pieces, this.#partial, { budget, first: false });
    }
    while (mayAdmit && budget > 0 && pieces.length < slots) {
      const next = waiting.first;
      if (next === undefined || !this.#admit(next)) break;
      waiting.shift();
      budget -= this.#add(pieces, next, { budget, first: true });
    }
    return pieces;
  }

  /** Takes the blocks of the whole prompt, leaving what this step's decodes need. */
  #admit(sequence: Sequence): boolean {
    const { pool, batch } = this.#on;
    pool.hold(sequence, pool.match(sequence, false));
    const need = sequence.pagesOf(sequence.knownTokens) - sequence.treeTokens;
    if (need > pool.available - batch.pageTokensFor(1)) {
      pool.release(sequence, { kvTokens: 0, takenTokens: sequence.treeTokens, keep: false });
      return false;
    }
    pool.take(need);
    sequence.cachedTokens += sequence.treeTokens;
    return true;
  }

  #add(pieces: Piece[], sequence: Sequence, { budget, first }: { budget: number; first: boolean }): number {
    const rest = sequence.knownTokens - sequence.filled;
    const newTokens = Math.min(rest, budget);
    const complete = newTokens === rest;
    pieces.push({ sequence, newTokens, before: sequence.filled, loadedTokens: 0, complete, first });
    this.#partial = complete ? undefined : sequence;
    return newTokens;
  }
}
