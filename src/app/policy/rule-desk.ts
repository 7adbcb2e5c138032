/**
 * Rules that come to a worker at work, one at a time: whoever asks waits for the outcome, and the worker is told to make a pause.
 * What moves it: `ask` puts a request there, `take` takes it away, and whoever took it answers; `close` sends away who still waits.
 */
import type { PolicyRule } from '../../spec/run.ts';
import type { RuleOutcome } from './apply-rule.ts';

export interface RuleRequest {
  readonly rule: PolicyRule;
  answer(outcome: RuleOutcome): void;
  refuse(thrown: unknown): void;
}

export class RuleDesk {
  #open: RuleRequest | undefined;
  #leave: (() => void) | undefined;
  #isClosed = false;
  #tell: ((rule: PolicyRule) => void) | undefined;

  /** undefined: the worker has ended and done nothing of it. */
  ask(rule: PolicyRule): Promise<RuleOutcome | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined);
    return new Promise((answer, refuse) => {
      this.#open = { rule, answer, refuse };
      this.#leave = () => answer(undefined);
      this.#tell?.(rule);
    });
  }

  /** The worker ends: nobody will take a request any more. */
  close(): void {
    this.#isClosed = true;
    if (this.take() !== undefined) this.#leave?.();
  }

  /** Told when a request comes, or at once where one is there; the answer takes the listener away. */
  onAsk(tell: (rule: PolicyRule) => void): () => void {
    this.#tell = tell;
    if (this.#open !== undefined) tell(this.#open.rule);
    return () => {
      this.#tell = undefined;
    };
  }

  take(): RuleRequest | undefined {
    const open = this.#open;
    this.#open = undefined;
    return open;
  }
}
