/**
 * The gate: how many requests may be in flight. Pulling, not pushing: whoever wants to send asks and waits. First come,
 * first served, except that a turn of a conversation under way goes before a new prompt, so that what is begun ends.
 * The number opens up by a ramp: 2,048 connections opened at once stall the event loop for half a second.
 */
import type { Clock } from '../host/host.ts';

/** New slots per 100 ms while ramping: 2,048 are open after 6.4 s, and no burst is larger than a listen backlog. */
const RAMP_SLOTS = 32;
const RAMP_EVERY_MS = 100;

export class Gate {
  readonly #limit: number;
  #open: number;
  #taken = 0;
  readonly #urgent: (() => void)[] = [];
  readonly #patient: (() => void)[] = [];

  constructor(limit: number) {
    this.#limit = limit;
    this.#open = Math.min(limit, RAMP_SLOTS);
  }

  /** Slots held: requests in flight, and whoever is about to send one. */
  get taken(): number {
    return this.#taken;
  }

  get limit(): number {
    return this.#limit;
  }

  /** Opens the gate step by step; returns when it is fully open or the signal aborts. */
  async ramp(clock: Clock, signal: AbortSignal): Promise<void> {
    while (this.#open < this.#limit && !signal.aborted) {
      await clock.sleep(RAMP_EVERY_MS, signal);
      this.#open = Math.min(this.#limit, this.#open + RAMP_SLOTS);
      this.#admit();
    }
  }

  /** Resolves when a slot is taken. `urgent` is for conversations under way. */
  enter(urgent: boolean): Promise<void> {
    return new Promise((resolve) => {
      (urgent ? this.#urgent : this.#patient).push(resolve);
      this.#admit();
    });
  }

  leave(): void {
    this.#taken -= 1;
    this.#admit();
  }

  #admit(): void {
    while (this.#taken < this.#open) {
      const next = this.#urgent.shift() ?? this.#patient.shift();
      if (next === undefined) return;
      this.#taken += 1;
      next();
    }
  }
}

/** One conversation's place in the gate: given back once however often it is left. It begins taken. */
export class Slot {
  readonly #gate: Gate;
  #held = true;

  constructor(gate: Gate) {
    this.#gate = gate;
  }

  async take(): Promise<void> {
    if (this.#held) return;
    await this.#gate.enter(true);
    this.#held = true;
  }

  leave(): void {
    if (this.#held) this.#gate.leave();
    this.#held = false;
  }
}
