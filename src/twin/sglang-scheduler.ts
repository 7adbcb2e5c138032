/**
 * SGLang's scheduling (0.5.x): prefill before decode, admission by reserve, retraction when the pool is full.
 *
 * A request is admitted when its new tokens and the clipped rest of its `max_tokens` fit what is free or evictable, less a
 * share (the new-token ratio) of what the running requests may still ask for. The ratio falls with every decode step, so
 * admission grows bolder until a retraction sets it anew. Once tokens or slots refused somebody the latch holds and nobody
 * is tried until a running request leaves. Rules and constants: docs/twin.md.
 */
import type { Batch } from './batch.ts';
import type { KvPool } from './kv-pool.ts';
import { orderByPrefix } from './longest-prefix.ts';
import type { Piece, Plan, Scheduler } from './scheduler.ts';
import type { Sequence } from './sequence.ts';
import { LPM_QUEUE_LIMIT, RESERVE_CLIP_TOKENS, RETRACT_STEPS, type SglangRules, type TwinServer } from './server.ts';
import { SglangPass } from './sglang-pass.ts';
import type { WaitingQueue } from './waiting-queue.ts';

const NOBODY: readonly never[] = [];

export interface Scheduled {
  readonly server: TwinServer;
  readonly pool: KvPool;
  readonly batch: Batch;
  readonly waiting: WaitingQueue;
}

export class SglangScheduler implements Scheduler {
  readonly #on: Scheduled;
  readonly #rules: SglangRules;
  #partial: Sequence | undefined;
  #ratio: number;
  /** Nobody is tried while this holds (`batch_is_full`). */
  #latched = false;

  constructor(on: Scheduled, rules: SglangRules) {
    this.#on = on;
    this.#rules = rules;
    this.#ratio = rules.newTokenRatio.initial;
  }

  get mixes(): boolean {
    return this.#rules.mixedChunk;
  }

  get partial(): Sequence | undefined {
    return this.#partial;
  }

  get ratio(): number {
    return this.#ratio;
  }

  dropPartial(): void {
    this.#partial = undefined;
  }

  takenByPartial(): number {
    return this.#partial?.filled ?? 0;
  }

  memberLeft(): void {
    this.#latched = false;
  }

  stepped(steps: number): void {
    const { floor, decayPerStep } = this.#rules.newTokenRatio;
    this.#ratio = Math.max(floor, this.#ratio - steps * decayPerStep);
  }

  becameIdle(): void {
    this.#ratio = this.#rules.newTokenRatio.initial;
    this.#latched = false;
  }

  plan(): Plan {
    const pieces = this.#admit();
    if (pieces.length > 0) return { pieces, retracted: NOBODY, failed: NOBODY };
    return { pieces, ...this.#makeRoom() };
  }

  #admit(): readonly Piece[] {
    const { server, pool, batch, waiting } = this.#on;
    if (this.#partial === undefined && (this.#latched || waiting.length === 0)) return NOBODY;
    const slots = server.maxRunningRequests - batch.size;
    if (slots <= 0 && this.#partial === undefined) {
      this.#latched = true;
      return NOBODY;
    }
    const decoding = this.#rules.mixedChunk ? batch.size : 0;
    const decodingTokens = this.#rules.mixedChunk ? batch.pageTokensFor(1) : 0;
    if (decodingTokens > pool.available) return NOBODY;
    if (this.#rules.policy === 'lpm' && waiting.length <= LPM_QUEUE_LIMIT)
      waiting.reorder((all) => orderByPrefix(all, pool, server.pageTokens));
    const pass = new SglangPass(pool, {
      reservedTokens: this.#reserve() + decodingTokens,
      inputTokens: this.#rules.maxPrefillTokens - decoding,
      chunkTokens: this.#rules.chunkedPrefillTokens - decoding,
      slots,
    });
    if (this.#partial !== undefined) pass.goOn(this.#partial, pool.available - decodingTokens);
    const refused = this.#admitWaiting(pass);
    if (refused && (pass.pieces.length > 0 || batch.size > 0)) this.#latched = true;
    this.#partial = pass.partial;
    pass.takePages();
    return pass.pieces;
  }

  /** Whether somebody was refused for want of tokens or slots. */
  #admitWaiting(pass: SglangPass): boolean {
    const { waiting } = this.#on;
    for (let next = waiting.first; next !== undefined && !this.#latched; next = waiting.first) {
      const answer = pass.consider(next);
      if (answer !== 'no-room' && answer !== 'later') waiting.shift();
      if (answer !== 'admitted') return answer === 'no-room' || answer === 'last-no-room';
    }
    return false;
  }

  /** What the running requests may still ask for, times the ratio. */
  #reserve(): number {
    const { batch } = this.#on;
    let ahead = 0;
    for (const sequence of batch.members)
      ahead += Math.min(sequence.maxNewTokens - batch.producedBy(sequence), RESERVE_CLIP_TOKENS);
    return ahead * this.#ratio;
  }

  /** Shortest answer first, of those the longest prompt, until the next step fits. One always stays. */
  #makeRoom(): Pick<Plan, 'retracted' | 'failed'> {
    const { pool, batch, waiting } = this.#on;
    if (batch.size === 0 || batch.pageTokensFor(1) <= pool.available) return { retracted: NOBODY, failed: NOBODY };
    const order = [...batch.members].sort(
      (a, b) => batch.producedBy(b) - batch.producedBy(a) || a.request.promptTokens - b.request.promptTokens,
    );
    const retracted: Sequence[] = [];
    while (order.length > 1 && (retracted.length === 0 || batch.pageTokensFor(1) > pool.available)) {
      const victim = order.pop();
      if (victim === undefined) break;
      const kvTokens = batch.kvTokensOf(victim);
      batch.leave(victim);
      pool.release(victim, { kvTokens, takenTokens: kvTokens, keep: false });
      pool.makeFree(Math.min(order.length * RETRACT_STEPS, pool.available));
      retracted.push(victim);
      waiting.push(victim);
    }
    const failed = batch.pageTokensFor(1) > pool.available ? order.splice(0) : NOBODY;
    this.#latched = false;
    this.#ratio = this.#ratioAfterRetraction(order);
    return { retracted, failed };
  }

  #ratioAfterRetraction(survivors: readonly Sequence[]): number {
    const { batch } = this.#on;
    let [made, most] = [0, 0];
    for (const sequence of survivors) {
      made += batch.producedBy(sequence);
      most += sequence.maxNewTokens;
    }
    return Math.min(1, (made + RETRACT_STEPS * survivors.length) / (most + 1));
  }
}
