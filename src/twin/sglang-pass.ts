/** One pass of SGLang's prefill adder: who of the queue goes into the next prefill batch, and with how much of the prompt. */
import type { KvPool } from './kv-pool.ts';
import type { Match } from './prefix-tree.ts';
import type { Piece } from './scheduler.ts';
import type { Sequence } from './sequence.ts';
import { LEAST_HOST_HIT_TOKENS, RESERVE_CLIP_TOKENS } from './server.ts';

/** no-room latches; later does not; `last-…` = taken, and nobody after it. */
export type PassAnswer = 'admitted' | 'last' | 'last-no-room' | 'no-room' | 'later';

export interface PassBudget {
  /** Kept for the running requests. */
  readonly reservedTokens: number;
  readonly inputTokens: number;
  readonly chunkTokens: number;
  readonly slots: number;
}

export class SglangPass {
  readonly pieces: Piece[] = [];
  partial: Sequence | undefined;
  readonly #pool: KvPool;
  readonly #slots: number;
  #promised: number;
  #input: number;
  #chunk: number;

  constructor(pool: KvPool, budget: PassBudget) {
    this.#pool = pool;
    this.#slots = budget.slots;
    this.#promised = budget.reservedTokens;
    this.#input = budget.inputTokens;
    this.#chunk = budget.chunkTokens;
  }

  /** The half computed request comes first, whatever the reserve says: only the pool itself can hold it up. */
  goOn(sequence: Sequence, freeTokens: number): void {
    const rest = sequence.knownTokens - sequence.filled;
    const room = sequence.wholePages(Math.min(this.#chunk, freeTokens + this.#slack(sequence)));
    const complete = rest <= Math.min(this.#chunk, freeTokens + this.#slack(sequence));
    const newTokens = complete ? rest : Math.max(0, room);
    this.partial = complete ? undefined : sequence;
    if (newTokens > 0) this.#add(sequence, { newTokens, complete, loadedTokens: 0, first: false });
  }

  consider(sequence: Sequence): PassAnswer {
    if (this.pieces.length >= this.#slots) return 'no-room';
    if (this.#chunk <= 0 || this.#input <= 0) return 'later';
    const match = this.#pool.match(sequence, true);
    const ahead = Math.min(sequence.maxNewTokens - sequence.produced, RESERVE_CLIP_TOKENS);
    const need = sequence.knownTokens - match.poolTokens + ahead;
    if (need >= this.#left()) return 'no-room';
    const computed = sequence.pagesOf(sequence.knownTokens - match.poolTokens - match.hostTokens);
    if (computed >= this.#input && this.pieces.length > 0) return 'later';
    this.#pool.hold(sequence, match);
    const answer = need >= this.#left() ? 'no-room' : this.#admit(sequence, match);
    if (answer === 'no-room' || answer === 'later')
      this.#pool.release(sequence, { kvTokens: 0, takenTokens: sequence.filled, keep: false });
    return answer;
  }

  /** After the pass: locks have kept the room that was promised. */
  takePages(): void {
    for (const { sequence, before, newTokens } of this.pieces)
      this.#pool.take(sequence.pagesOf(before + newTokens) - sequence.pagesOf(before));
  }

  #admit(sequence: Sequence, match: Match): PassAnswer {
    const loadedTokens = match.hostTokens >= LEAST_HOST_HIT_TOKENS ? match.hostTokens : 0;
    const rest = sequence.knownTokens - match.poolTokens - loadedTokens;
    const whole = sequence.pagesOf(rest) <= this.#chunk;
    const cut = sequence.wholePages(Math.min(this.#chunk, rest));
    if (!whole && (this.partial !== undefined || cut <= 0)) return 'later';
    if (loadedTokens > 0) this.#pool.loadBack(sequence, match);
    this.#add(sequence, { newTokens: whole ? rest : cut, complete: whole, loadedTokens, first: true });
    if (!whole) this.partial = sequence;
    if (this.#left() <= 0) return 'last-no-room';
    return this.#input <= 0 || this.#chunk <= 0 ? 'last' : 'admitted';
  }

  /** Charged as computed now, and with its clipped rest once its prompt is complete. */
  #add(sequence: Sequence, piece: Pick<Piece, 'newTokens' | 'complete' | 'loadedTokens' | 'first'>): void {
    this.pieces.push({ sequence, before: sequence.filled, ...piece });
    if (piece.first) sequence.cachedTokens += sequence.treeTokens;
    const charged = sequence.pagesOf(piece.newTokens);
    const ahead = piece.complete ? Math.min(sequence.maxNewTokens - sequence.produced, RESERVE_CLIP_TOKENS) : 0;
    this.#promised += charged + ahead;
    this.#input -= charged;
    this.#chunk -= charged;
  }

  #left(): number {
    return this.#pool.available - this.#promised;
  }

  /** Room in the last page that it has taken already. */
  #slack(sequence: Sequence): number {
    return sequence.pagesOf(sequence.filled) - sequence.filled;
  }
}
