/**
 * A model of one inference engine, event by event: requests in, tokens out, on a clock of its own.
 *
 * Between two events all running requests gain one token per step, so the twin goes from event to event in one jump: the
 * next ending, the last step that the pool has room for, or the first step that sees a new arrival. `submit`, `abort` and
 * `advance` may be called in any order: an arrival is seen at the first step that begins after it, as in the engine.
 *
 * Promises: the pool is never exceeded; every request ends once; a request that ends `finished` has all its tokens; the same
 * calls give the same events. Not modelled: docs/twin.md. On failure: a server that cannot be played is a bug of the caller.
 */
import { bug } from '../base/errors.ts';
import { Batch } from './batch.ts';
import { Inputs } from './inputs.ts';
import { KvPool } from './kv-pool.ts';
import type { TwinRequest } from './load.ts';
import { Residents } from './residents.ts';
import type { Piece, Plan, Scheduler } from './scheduler.ts';
import { problemsOf, type TwinServer } from './server.ts';
import { SglangScheduler } from './sglang-scheduler.ts';
import { StepPlanner } from './step-planner.ts';
import { type Stretch, type Sums, sumPieces, Tally } from './tally.ts';
import type { PrefillBatch, TwinEvent } from './twin-event.ts';
import { VllmScheduler } from './vllm-scheduler.ts';
import { WaitingQueue } from './waiting-queue.ts';

export interface TwinListener {
  readonly onEvent?: (event: TwinEvent) => void;
  readonly onStretch?: (stretch: Stretch) => void;
  /** Told when a step with prompt tokens begins; its event comes when it ends. */
  readonly onPrefill?: (batch: PrefillBatch) => void;
}

/** A single step that has begun: what it changes, it changes at its end. */
interface Begun {
  readonly pieces: readonly Piece[];
  readonly endsAt: number;
  /** Running requests that gain a token. */
  readonly decoding: number;
}

export class Twin {
  readonly #pool: KvPool;
  readonly #batch: Batch;
  readonly #waiting = new WaitingQueue();
  readonly #inputs = new Inputs();
  readonly #scheduler: Scheduler;
  readonly #tally: Tally;
  readonly #onEvent: (event: TwinEvent) => void;
  readonly #onPrefill: ((batch: PrefillBatch) => void) | undefined;
  readonly #steps: StepPlanner;
  readonly #residents: Residents;
  #begun: Begun | undefined;
  /** End of the last finished step. */
  #now = 0;
  /** What is submitted between two calls comes no earlier than the time up to which the first has played. */
  #playedTo = 0;

  constructor(server: TwinServer, listener: TwinListener = {}) {
    const problems = problemsOf(server);
    if (problems.length > 0) throw bug(`a twin was asked to play an impossible server: ${problems.join('; ')}`);
    this.#pool = new KvPool(server);
    this.#batch = new Batch(server.pageTokens);
    this.#steps = new StepPlanner(server, this.#batch, this.#pool);
    this.#tally = new Tally(listener.onStretch);
    this.#onEvent = listener.onEvent ?? (() => undefined);
    this.#onPrefill = listener.onPrefill;
    const on = { server, pool: this.#pool, batch: this.#batch, waiting: this.#waiting };
    const { rules } = server;
    this.#scheduler = rules.engine === 'vllm' ? new VllmScheduler(on, rules) : new SglangScheduler(on, rules);
    this.#residents = new Residents({ ...on, scheduler: this.#scheduler, onEvent: this.#onEvent });
  }

  /** Seconds; the end of the last finished step. */
  get now(): number {
    return this.#now;
  }

  get running(): number {
    return this.#batch.size + this.#inPrefill;
  }

  get queued(): number {
    return this.#waiting.length;
  }

  get usedTokens(): number {
    return this.#pool.used;
  }

  get freeTokens(): number {
    return this.#pool.free;
  }

  get newTokenRatio(): number {
    return this.#scheduler.ratio;
  }

  /** A copy of the sums up to `now`. */
  get sums(): Sums {
    return { ...this.#tally.sums };
  }

  /** Prompt and answer together must be smaller than this: beyond it the request is refused, or its `max_tokens` cut. */
  get longestRequestTokens(): number {
    return this.#residents.longestTokens;
  }

  /** Tokens that a request has produced by `now`; undefined = it is not here. */
  producedBy(id: string): number | undefined {
    return this.#residents.producedBy(id);
  }

  /** When more than tokens will happen next, as far as is known after an `advance`; Infinity = never. */
  get nextChangeAt(): number {
    if (this.#begun !== undefined) return this.#begun.endsAt;
    const arrivalAt = this.#inputs.nextAt;
    if (this.#batch.size === 0) return this.#waiting.length > 0 ? this.#now : arrivalAt;
    return this.#now + this.#steps.seconds(this.#steps.steps({ now: this.#now, until: Number.POSITIVE_INFINITY, arrivalAt }));
  }

  /** When the running requests have gained so many tokens, if nothing comes between; Infinity = no decode step is next. */
  timeAfterSteps(steps: number): number {
    if (this.#begun !== undefined || this.#batch.size === 0) return Number.POSITIVE_INFINITY;
    return this.#now + this.#steps.seconds(steps);
  }

  /** Never in the past: not before `now`, nor before a moment up to which it has been played. */
  submit(request: TwinRequest, at = 0): void {
    this.#inputs.add({ kind: 'request', at: Math.max(at, this.#now, this.#playedTo), request });
  }

  abort(id: string, at = 0): void {
    this.#inputs.add({ kind: 'abort', at: Math.max(at, this.#now, this.#playedTo), id });
  }

  /** Forgets every prefix that nobody runs on. */
  flushCache(): void {
    this.#pool.makeFree(this.#pool.available);
  }

  /**
   * Plays all steps that end by `until`; without it, until nothing is left to do. A step that is under way at `until` ends in a
   * later call.
   */
  advance(until = Number.POSITIVE_INFINITY): void {
    this.#playedTo = 0; // what a listener submits comes at the event that it hears
    while (this.#step(until));
    if (until < Number.POSITIVE_INFINITY) this.#playedTo = until;
  }

  #step(until: number): boolean {
    if (this.#begun !== undefined) return this.#endStep(this.#begun, until);
    this.#takeInputs();
    if (this.#residents.isEmpty) return this.#idle(until);
    const plan = this.#decide();
    // After a retraction the next step may admit again: no jump over it.
    if (plan.pieces.length > 0 || (plan.retracted.length > 0 && this.#batch.size > 0)) return this.#begin(plan.pieces);
    if (this.#batch.size > 0) return this.#decode(until);
    if (plan.failed.length > 0 || plan.retracted.length > 0) return true;
    throw bug('the twin stands still', { queued: this.#waiting.length, free: this.#pool.free, pool: this.#pool.tokens });
  }

  #idle(until: number): boolean {
    this.#scheduler.becameIdle();
    const next = Math.min(this.#inputs.nextAt, until);
    if (next === Number.POSITIVE_INFINITY || next < this.#now) return false;
    const seconds = next - this.#now;
    this.#now = next;
    this.#tally.sums.seconds += seconds;
    return this.#inputs.nextAt <= this.#now;
  }

  #takeInputs(): void {
    for (let input = this.#inputs.take(this.#now); input !== undefined; input = this.#inputs.take(this.#now)) {
      if (input.kind === 'abort') this.#residents.abort(input.id, this.#now);
      else {
        // It waited in the server's queue since then, though the running step did not see it.
        this.#tally.sums.queuedSeconds += this.#now - input.at;
        this.#residents.enter(input.request, input.at, this.#now);
      }
    }
  }

  #decide(): Plan {
    const ratioBefore = this.#scheduler.ratio;
    const availableBefore = this.#pool.available;
    const plan = this.#scheduler.plan();
    if (plan.retracted.length > 0) {
      this.#tally.sums.retractions += plan.retracted.length;
      const ids = plan.retracted.map(({ request }) => request.id);
      const gainedTokens = this.#pool.available - availableBefore;
      this.#onEvent({ kind: 'retracted', at: this.#now, ids, ratioBefore, ratioAfter: this.#scheduler.ratio, gainedTokens });
    }
    for (const sequence of plan.failed) this.#residents.leave(sequence, 'out-of-memory', this.#now);
    return plan;
  }

  #begin(pieces: readonly Piece[]): true {
    const decoding = pieces.length === 0 || this.#scheduler.mixes ? this.#batch.size : 0;
    if (pieces.length > 0) this.#tellPrefill(pieces);
    if (decoding > 0) this.#pool.take(this.#batch.pageTokensFor(1));
    this.#begun = { pieces, decoding, endsAt: this.#now + this.#steps.withPieces(pieces, decoding > 0) };
    return true;
  }

  #tellPrefill(pieces: readonly Piece[]): void {
    const counted = sumPieces(pieces);
    const usedTokens = this.#pool.used - counted.newTokens;
    this.#onPrefill?.({ at: this.#now, ...counted, running: this.#batch.size, queued: this.#waiting.length, usedTokens });
  }

  #endStep({ pieces, endsAt, decoding }: Begun, until: number): boolean {
    if (endsAt > until) return false;
    const seconds = endsAt - this.#now;
    let context = this.#batch.contextTokens + decoding;
    for (const { before, newTokens } of pieces) context += before + newTokens;
    if (pieces.length === 0) context += this.#scheduler.partial?.filled ?? 0;
    const used = this.#pool.used;
    const generatedTokens = decoding + pieces.filter(({ complete }) => complete).length;
    this.#tally.add({
      ...{ fromSeconds: this.#now, seconds, running: this.running, queued: this.#waiting.length },
      ...{ contextSeconds: context * seconds, usedBefore: used, usedAfter: used, generatedTokens },
    });
    this.#begun = undefined;
    this.#now = endsAt;
    if (decoding > 0) this.#stepped(1);
    const done = decoding > 0 ? this.#batch.finished() : [];
    if (pieces.length > 0)
      this.#onEvent({ kind: 'prefill', at: this.#now, ...this.#tally.countPrefill(pieces, seconds), seconds });
    else this.#onEvent({ kind: 'decode', at: this.#now, steps: 1, seconds });
    for (const sequence of done) this.#residents.leave(sequence, 'finished', this.#now);
    for (const piece of pieces) this.#residents.fill(piece, this.#now);
    return true;
  }

  #decode(until: number): boolean {
    const batch = this.#batch;
    const steps = this.#steps.steps({ now: this.#now, until, arrivalAt: this.#inputs.nextAt });
    if (steps === 0) return false;
    const seconds = this.#steps.seconds(steps);
    const usedBefore = this.#pool.used;
    // A half computed prompt waits meanwhile with what it has.
    const contextSeconds = this.#steps.contextSeconds(steps) + (this.#scheduler.partial?.filled ?? 0) * seconds;
    this.#pool.take(batch.pageTokensFor(steps));
    this.#tally.add({
      ...{ fromSeconds: this.#now, seconds, running: this.running, queued: this.#waiting.length },
      ...{ contextSeconds, usedBefore, usedAfter: this.#pool.used, generatedTokens: steps * batch.size },
    });
    this.#now += seconds;
    this.#stepped(steps);
    this.#onEvent({ kind: 'decode', at: this.#now, steps, seconds });
    for (const sequence of batch.finished()) this.#residents.leave(sequence, 'finished', this.#now);
    return true;
  }

  #stepped(steps: number): void {
    this.#batch.advance(steps);
    this.#scheduler.stepped(steps);
    this.#tally.sums.decodeSteps += steps;
  }

  get #inPrefill(): number {
    const computing = this.#begun?.pieces.length ?? 0;
    return computing === 0 && this.#scheduler.partial !== undefined ? 1 : computing;
  }
}
