/**
 * The gate: how many requests may be in flight. Pulling, not pushing: whoever wants to send asks and waits. First come,
 * first served, except that a turn of a conversation under way goes before a new prompt, so that what is begun ends.
 * The number opens up by a ramp: 2,048 connections opened at once stall the event loop for half a second.
 *
 *   ramping ──limit reached──▶ open ──a higher limit──▶ ramping
 *      └──no server is ready (hold)──▶ held at the first step ──one is ready (release)──▶ ramping from what is in flight
 *
 * A lower limit takes nothing back: what is in flight ends, and nobody enters until there is room again.
 */
import type { Clock } from '../host/host.ts';

/** New slots per 100 ms while ramping: 2,048 are open after 6.4 s, and no burst is larger than a listen backlog. */
const RAMP_SLOTS = 32;
const RAMP_EVERY_MS = 100;

export class Gate {
  #limit: number;
  #open: number;
  #isHeld = false;
  #wake: () => void = () => undefined;
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

  /** At least 1: a gate that nobody passes would end in silence. */
  setLimit(limit: number): void {
    this.#limit = Math.max(1, Math.floor(limit));
    this.#open = Math.min(this.#limit, Math.max(this.#open, RAMP_SLOTS));
    this.#admit();
    this.#wake();
  }

  /** No server is ready: whoever enters would wait for one, and all would fall upon it together. */
  hold(): void {
    this.#isHeld = true;
    this.#open = Math.min(this.#limit, RAMP_SLOTS);
  }

  /** A server is ready; `inFlight` requests were never lost, and the ramp goes on from there. */
  release(inFlight: number): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#open = Math.min(this.#limit, Math.max(RAMP_SLOTS, inFlight));
    this.#admit();
    this.#wake();
  }

  /** Opens the gate step by step, as often as there is something to open; returns when the signal aborts. */
  async ramp(clock: Clock, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      if (this.#isHeld || this.#open >= this.#limit) {
        await this.#changed(signal);
        continue;
      }
      await clock.sleep(RAMP_EVERY_MS, signal);
      if (this.#isHeld || signal.aborted) continue;
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

  #changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#wake = wake;
      signal.addEventListener('abort', wake);
    });
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
