/**
 * Rules that come to a worker at work, one at a time: whoever asks waits for the outcome, and the worker is told to make a pause.
 * What moves it: `ask` puts a request there, `take` takes it away, and whoever took it answers.
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
  #tell: ((rule: PolicyRule) => void) | undefined;

  ask(rule: PolicyRule): Promise<RuleOutcome> {
    return new Promise((answer, refuse) => {
      this.#open = { rule, answer, refuse };
      this.#tell?.(rule);
    });
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
