/**
 * How one server has treated requests lately: what tells a sick server from a poison prompt, and a server to avoid from
 * one to use.
 */
import type { OutcomeKind } from '../engine/dialect.ts';

/** Different prompts in a row that came back without an answer: then it is the server. */
const FAILING_PROMPTS_MEAN_SICK = 5;
/** A sick server is tried again after this: it fails fast, so it would otherwise draw every request to itself. */
const SICK_FOR_MS = 30_000;

export class Standing {
  /** Requests answered, whoever asked. */
  answers = 0;
  refusalsInARow = 0;
  inFlight = 0;
  readonly #failing = new Set<string>();
  #lastFailureMs = 0;

  ended(prompt: string, outcome: OutcomeKind, nowMs: number): void {
    this.inFlight -= 1;
    switch (outcome) {
      case 'completed':
        this.answers += 1;
        this.refusalsInARow = 0;
        this.#failing.clear();
        return;
      case 'refused':
        this.refusalsInARow += 1;
        return;
      case 'lost':
      case 'failed':
      case 'malformed':
      case 'overloaded':
        this.#failing.add(prompt);
        this.#lastFailureMs = nowMs;
        return;
      case 'unauthorised':
      case 'abandoned':
        return;
    }
  }

  /** Left alone while another server is well. */
  isSick(nowMs: number): boolean {
    return this.#failing.size >= FAILING_PROMPTS_MEAN_SICK && nowMs - this.#lastFailureMs < SICK_FOR_MS;
  }
}
