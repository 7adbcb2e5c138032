/** Who is in the engine and where: waiting, half computed or running; how one enters, gains its prompt's tokens, and leaves. */
import { bug } from '../base/errors.ts';
import type { Batch } from './batch.ts';
import type { KvPool } from './kv-pool.ts';
import type { TwinRequest } from './load.ts';
import type { Piece, Scheduler } from './scheduler.ts';
import { Sequence } from './sequence.ts';
import type { TwinEnding, TwinEvent } from './twin-event.ts';
import type { WaitingQueue } from './waiting-queue.ts';

interface Places {
  readonly pool: KvPool;
  readonly batch: Batch;
  readonly waiting: WaitingQueue;
  readonly scheduler: Scheduler;
  readonly onEvent: (event: TwinEvent) => void;
}

export class Residents {
  readonly #in: Places;
  readonly #byId = new Map<string, Sequence>();

  constructor(places: Places) {
    this.#in = places;
  }

  /** Prompt and answer together are no longer than this: beyond it the request is refused, or its `max_tokens` cut. */
  get longestTokens(): number {
    return this.#in.pool.tokens - this.#in.pool.pageTokens - 1;
  }

  get isEmpty(): boolean {
    return this.#byId.size === 0;
  }

  producedBy(id: string): number | undefined {
    const sequence = this.#byId.get(id);
    if (sequence === undefined) return undefined;
    return this.#in.batch.has(sequence) ? this.#in.batch.producedBy(sequence) : sequence.produced;
  }

  enter(request: TwinRequest, arrivedAt: number, now: number): void {
    if (this.#byId.has(request.id)) throw bug(`two requests of the twin are called ${request.id}`);
    const limits = { totalTokens: this.longestTokens, pageTokens: this.#in.pool.pageTokens };
    const sequence = new Sequence(request, arrivedAt, limits);
    this.#byId.set(request.id, sequence);
    if (sequence.outputTokens < 1 || request.promptTokens < 1) this.#end(sequence, 'refused', now);
    else this.#in.waiting.push(sequence);
  }

  /** A part of its prompt has been computed; the last part gives the first token. */
  fill({ sequence, newTokens, complete }: Piece, now: number): void {
    sequence.filled += newTokens;
    this.#in.pool.share(sequence, sequence.filled);
    if (!complete) return;
    if (sequence.firstTokenAt === undefined) {
      sequence.firstTokenAt = now;
      this.#in.onEvent({ kind: 'first-token', at: now, id: sequence.request.id });
    }
    sequence.produced += 1;
    this.#in.batch.join(sequence);
    if (sequence.produced >= sequence.outputTokens) this.leave(sequence, 'finished', now);
  }

  /** A running request is done. */
  leave(sequence: Sequence, ending: TwinEnding, now: number): void {
    const { batch, pool, scheduler } = this.#in;
    const kvTokens = batch.kvTokensOf(sequence);
    batch.leave(sequence);
    pool.release(sequence, { kvTokens, takenTokens: kvTokens, keep: ending !== 'out-of-memory' });
    scheduler.memberLeft();
    this.#end(sequence, ending, now);
  }

  /** Wherever it is; one that has ended meanwhile is none. */
  abort(id: string, now: number): void {
    const { batch, pool, scheduler, waiting } = this.#in;
    const sequence = this.#byId.get(id);
    if (sequence === undefined) return;
    if (batch.has(sequence)) {
      this.leave(sequence, 'aborted', now);
      return;
    }
    if (sequence === scheduler.partial) {
      pool.release(sequence, { kvTokens: sequence.filled, takenTokens: scheduler.takenByPartial(), keep: true });
      scheduler.dropPartial();
      scheduler.memberLeft();
    } else waiting.remove(sequence);
    this.#end(sequence, 'aborted', now);
  }

  #end(sequence: Sequence, ending: TwinEnding, at: number): void {
    const { request, produced, cachedTokens, arrivedAt } = sequence;
    this.#byId.delete(request.id);
    this.#in.onEvent({ kind: 'ended', at, id: request.id, ending, produced, cachedTokens, arrivedAt });
  }
}
