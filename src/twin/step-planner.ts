/** How long a step takes, how far the twin may jump while nothing but decode steps happens, and what context those read. */
import type { Batch } from './batch.ts';
import type { KvPool } from './kv-pool.ts';
import type { Piece } from './scheduler.ts';
import type { TwinServer } from './server.ts';
import { decodeBaseSeconds, decodeSeconds, largest, prefillSeconds } from './step-time.ts';

export interface JumpLimits {
  readonly now: number;
  /** No step may end after this. */
  readonly until: number;
  /** The next arrival is seen at the first step that begins after it. */
  readonly arrivalAt: number;
}

export class StepPlanner {
  readonly #server: TwinServer;
  readonly #batch: Batch;
  readonly #pool: KvPool;
  readonly #bases: number[] = [];

  constructor(server: TwinServer, batch: Batch, pool: KvPool) {
    this.#server = server;
    this.#batch = batch;
    this.#pool = pool;
  }

  /** The next ending, the last step that the pool has room for, the first that sees an arrival: whatever comes first. 0 = none fits in time. */
  steps({ now, until, arrivalAt }: JumpLimits): number {
    const fitting = largest(this.#batch.stepsToNextEnding(), (steps) => this.#batch.pageTokensFor(steps) <= this.#pool.available);
    const unseen = largest(fitting, (steps) => now + this.seconds(steps) < arrivalAt);
    return largest(Math.min(fitting, unseen + 1), (steps) => now + this.seconds(steps) <= until);
  }

  seconds(steps: number): number {
    const { size, contextTokens } = this.#batch;
    return decodeSeconds(this.#base(size), this.#server.stepTime.perContextTokenSeconds, steps, size, contextTokens);
  }

  /** A step with prompt tokens, in which `decoding` says whether the running requests gain a token too. */
  withPieces(pieces: readonly Piece[], decoding: boolean): number {
    const { prefill } = this.#server.stepTime;
    const computing = prefillSeconds(prefill, pieces);
    let loaded = 0;
    for (const piece of pieces) loaded += piece.loadedTokens;
    // Copying back from the host overlaps with the layers that are computed.
    const loading = loaded * (this.#server.hostTier?.loadBackSecondsPerToken ?? 0);
    return Math.max(loading, decoding ? computing + this.seconds(1) : Math.max(computing, prefill.leastSeconds));
  }

  /** Σ over the steps of (their context × their time): both grow by the same amount each step. */
  contextSeconds(steps: number): number {
    const { size, contextTokens } = this.#batch;
    const first = steps * contextTokens + (size * steps * (steps + 1)) / 2;
    const squares =
      steps * contextTokens ** 2 +
      contextTokens * size * steps * (steps + 1) +
      (size ** 2 * steps * (steps + 1) * (2 * steps + 1)) / 6;
    return this.#base(size) * first + this.#server.stepTime.perContextTokenSeconds * squares;
  }

  #base(batch: number): number {
    const known = this.#bases[batch];
    if (known !== undefined) return known;
    const base = decodeBaseSeconds(this.#server.stepTime, this.#server.graphBatchSizes, batch);
    this.#bases[batch] = base;
    return base;
  }
}
