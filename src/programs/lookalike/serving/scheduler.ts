/**
 * The engine's scheduler in real time: the twin, driven by the lookalike's clock from event to event. One timer, no ticks.
 *
 * Promises: every request that is submitted ends once, unless the scheduler hangs or the program dies; before each prefill batch the
 * launch is asked whether its activations fit, and dies if they do not; what is told is told in order.
 */
import { bug } from '../../../base/errors.ts';
import type { Segment } from '../../../twin/load.ts';
import type { TwinServer } from '../../../twin/server.ts';
import { stepTimeFor, twinServerOf } from '../../../twin/server-of-launch.ts';
import { Twin } from '../../../twin/twin.ts';
import type { PrefillBatch, TwinEvent } from '../../../twin/twin-event.ts';
import type { EngineLife } from '../life.ts';
import { openPrefixIndex } from './prefix-index.ts';
import type { Ended, ScheduledEvent, SchedulerNow } from './scheduled-event.ts';

/** `--decode-log-interval`. */
const STEPS_PER_READING = 40;

/** A timer that was set for a moment may be woken a rounding error before it. */
const ROUNDING_SECONDS = 1e-6;

interface Resident {
  readonly promptTokens: number;
  readonly shared: readonly Segment[];
  readonly startedAt: number;
  hasStarted: boolean;
  retractions: number;
  settle(ended: Ended): void;
}

export interface SchedulerRequest {
  readonly life: EngineLife;
  readonly onEvent: (event: ScheduledEvent) => void;
}

/** Throws where the speed of the launch is not known: such a launch cannot be played. */
export function openScheduler(request: SchedulerRequest): Scheduler {
  return new Scheduler(request);
}

export class Scheduler {
  readonly server: TwinServer;
  readonly #life: EngineLife;
  readonly #onEvent: (event: ScheduledEvent) => void;
  readonly #twin: Twin;
  readonly #residents = new Map<string, Resident>();
  readonly #prefixes = openPrefixIndex();
  #openedAt: number;
  /** What has gone on since the last reading was told. */
  #since = { steps: 0, tokens: 0, at: 0 };
  #lastResultAt = Number.NEGATIVE_INFINITY;
  #stoodStillAt: number | undefined;
  #cancelTimer = (): void => undefined;

  constructor({ life, onEvent }: SchedulerRequest) {
    this.#life = life;
    this.#onEvent = onEvent;
    this.server = serverOf(life);
    this.#openedAt = life.clock.elapsed();
    this.#twin = new Twin(this.server, {
      onPrefill: (batch) => this.#aboutToPrefill(batch),
      onEvent: (event) => this.#hear(event),
    });
  }

  /** Tokens that prompt and answer of one request may have together. */
  get longestRequestTokens(): number {
    return this.#twin.longestRequestTokens;
  }

  get isHung(): boolean {
    return this.#stoodStillAt !== undefined;
  }

  /** Never settles while the scheduler hangs. `answerTokens`: what it will really generate if `maxTokens` allows. */
  submit(id: string, promptIds: readonly number[], maxTokens: number, answerTokens: number): Promise<Ended> {
    return new Promise((settle) => {
      const shared = this.server.prefixCache ? this.#prefixes.segmentsOf(promptIds) : [];
      const promptTokens = promptIds.length;
      const startedAt = this.#seconds();
      this.#residents.set(id, { promptTokens, shared, startedAt, hasStarted: false, retractions: 0, settle });
      const asked = { id, promptTokens, outputTokens: answerTokens, maxNewTokens: maxTokens, shared };
      this.#change(() => this.#twin.submit(asked, this.#seconds()));
    });
  }

  /** Wherever it is; what it held is free at the next step. */
  abort(id: string): void {
    if (this.#residents.has(id)) this.#change(() => this.#twin.abort(id, this.#seconds()));
  }

  abortAll(): void {
    this.#change(() => {
      for (const id of this.#residents.keys()) this.#twin.abort(id, this.#seconds());
    });
  }

  /** The next turn may go on from these ids: prompt and answer of a request that has ended. */
  remember(id: string, { shared }: Ended, ids: readonly number[]): void {
    if (this.server.prefixCache) this.#prefixes.remember(id, shared, ids);
  }

  /** From now on nothing moves: no step, no answer, no figure. Until `resume`, if anybody can. */
  hang(): void {
    this.#catchUp();
    this.#stoodStillAt ??= this.#life.clock.elapsed();
    this.#cancelTimer();
  }

  /** As if no time had passed. */
  resume(): void {
    if (this.#stoodStillAt === undefined) return;
    this.#openedAt += this.#life.clock.elapsed() - this.#stoodStillAt;
    this.#stoodStillAt = undefined;
    this.#arm();
  }

  /** Whether it forgot its prefixes; not while it has requests. */
  flushCache(): boolean {
    this.#catchUp();
    if (this.#residents.size > 0) return false;
    this.#twin.flushCache();
    return true;
  }

  /** Seconds since the last result of a step; Infinity = there was none. They go on while it hangs. */
  quietSeconds(): number {
    this.#catchUp();
    return this.#seconds() - this.#lastResultAt;
  }

  /** Nobody is here: neither running nor waiting. */
  get isIdle(): boolean {
    return this.#residents.size === 0;
  }

  now(): SchedulerNow {
    this.#catchUp();
    const { running, queued, usedTokens } = this.#twin;
    const { generatedTokens, cachedTokens, promptTokens } = this.#twin.sums;
    return { running, queued, usedTokens, generatedTokens, cachedTokens, promptTokens };
  }

  #seconds(): number {
    return (this.#life.clock.elapsed() - this.#openedAt) / 1000;
  }

  #change(act: () => void): void {
    this.#catchUp();
    act();
    this.#catchUp();
    this.#arm();
  }

  /** Plays up to now, stopping wherever something is to be told at its own time. */
  #catchUp(): void {
    if (this.isHung) return;
    const until = this.#seconds() + ROUNDING_SECONDS;
    for (let next = this.#nextMoment(); next <= until; next = this.#nextMoment()) this.#twin.advance(next);
    this.#twin.advance(until);
  }

  #nextMoment(): number {
    return Math.min(this.#twin.nextChangeAt, this.#twin.timeAfterSteps(STEPS_PER_READING - this.#since.steps));
  }

  #arm(): void {
    this.#cancelTimer();
    const next = this.#nextMoment();
    if (this.isHung || next === Number.POSITIVE_INFINITY) return;
    this.#cancelTimer = this.#life.clock.after((next - this.#seconds()) * 1000, () => this.#change(() => undefined));
  }

  #aboutToPrefill(batch: PrefillBatch): void {
    if (!this.#life.canPrefill(batch.newTokens)) this.#life.dieOutOfMemory(batch.newTokens);
    this.#onEvent({ kind: 'prefill', batch, pendingTokens: pendingBehind(this.#residents, batch) });
  }

  #hear(event: TwinEvent): void {
    this.#lastResultAt = event.at;
    if (event.kind === 'decode') this.#countSteps(event.steps, event.at);
    else if (event.kind === 'first-token') this.#begin(event.id, event.at);
    else if (event.kind === 'retracted') this.#retract(event);
    else if (event.kind === 'ended') this.#end(event);
  }

  #countSteps(steps: number, at: number): void {
    const since = this.#since;
    since.steps += steps;
    since.tokens += steps * this.#twin.running;
    if (since.steps < STEPS_PER_READING) return;
    const { running, queued, usedTokens, newTokenRatio: ratio } = this.#twin;
    this.#since = { steps: 0, tokens: 0, at };
    const reading = { running, queued, usedTokens, generatedTokens: since.tokens, seconds: at - since.at, ratio };
    this.#onEvent({ kind: 'decode', reading });
  }

  #begin(id: string, at: number): void {
    const resident = this.#residents.get(id);
    if (resident === undefined) return;
    resident.hasStarted = true;
    this.#onEvent({ kind: 'first-token', promptTokens: resident.promptTokens, afterSeconds: at - resident.startedAt });
  }

  #retract({ ids, gainedTokens, ratioBefore, ratioAfter }: Extract<TwinEvent, { kind: 'retracted' }>): void {
    for (const id of ids) {
      const resident = this.#residents.get(id);
      if (resident !== undefined) resident.retractions += 1;
    }
    this.#onEvent({ kind: 'retracted', requests: ids.length, gainedTokens, ratioBefore, ratioAfter });
  }

  #end({ id, ending, produced, cachedTokens, at }: Extract<TwinEvent, { kind: 'ended' }>): void {
    const resident = this.#residents.get(id);
    if (resident === undefined) return;
    this.#residents.delete(id);
    const { promptTokens, shared, retractions, startedAt, settle } = resident;
    const ended = { ending, promptTokens, produced, cachedTokens, shared, retractions, seconds: at - startedAt };
    this.#onEvent({ kind: 'ended', id, ended });
    settle(ended);
  }
}

function serverOf({ launch, prediction, shape, gpu }: EngineLife): TwinServer {
  const stepTime = stepTimeFor(shape, gpu, launch, undefined);
  if (stepTime === undefined) throw bug(`the lookalike knows no speed of ${shape.name} on ${gpu.name}`);
  return twinServerOf(launch, prediction, stepTime);
}

/** Prompt tokens of those that have no token yet, less what this batch computes. */
function pendingBehind(residents: ReadonlyMap<string, Resident>, { newTokens, cachedTokens }: PrefillBatch): number {
  let tokens = 0;
  for (const { hasStarted, promptTokens } of residents.values()) if (!hasStarted) tokens += promptTokens;
  return Math.max(0, tokens - newTokens - cachedTokens);
}
