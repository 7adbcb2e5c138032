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
  /** Turned away (401, 403, 404, 405) and looked at again, so often in a row. */
  rejectionsInARow = 0;
  inFlight = 0;
  #rejectedAtMs = Number.NEGATIVE_INFINITY;
  readonly #failing = new Set<string>();
  #lastFailureMs = 0;

  ended(prompt: string, outcome: OutcomeKind, nowMs: number, sinceMs = nowMs): void {
    this.inFlight -= 1;
    switch (outcome) {
      case 'completed':
        this.answers += 1;
        this.refusalsInARow = 0;
        this.rejectionsInARow = 0;
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
        // Those that were in flight together are one rejection: the server is looked at between two.
        if (sinceMs < this.#rejectedAtMs) return;
        this.rejectionsInARow += 1;
        this.#rejectedAtMs = nowMs;
        return;
      case 'abandoned':
        return;
    }
  }

  /** Left alone while another server is well. */
  isSick(nowMs: number): boolean {
    return this.#failing.size >= FAILING_PROMPTS_MEAN_SICK && nowMs - this.#lastFailureMs < SICK_FOR_MS;
  }
}
