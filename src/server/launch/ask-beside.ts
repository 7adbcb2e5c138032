/**
 * A question that may take long, asked beside the watching: at most one is under way, and whoever looks gets the last answer
 * and how long the open question has been waiting. A busy server answers late; a look must not wait for it.
 */
export class AskBeside<T> {
  readonly #ask: () => Promise<T>;
  readonly #elapsed: () => number;
  #last: T | undefined;
  #pending: Promise<void> | undefined;
  #askedAt = 0;
  #lastAskedAt = 0;

  constructor(ask: () => Promise<T>, elapsed: () => number) {
    this.#ask = ask;
    this.#elapsed = elapsed;
  }

  get last(): T | undefined {
    return this.#last;
  }

  /** When the question was asked that `last` answers. */
  get lastAskedAt(): number {
    return this.#lastAskedAt;
  }

  /** 0 = no question is open. */
  get waitingMs(): number {
    return this.#pending === undefined ? 0 : this.#elapsed() - this.#askedAt;
  }

  /** Asks unless a question is open, and waits for an answer until `within` resolves. */
  async ask(within: Promise<unknown>): Promise<void> {
    if (this.#pending === undefined) {
      this.#askedAt = this.#elapsed();
      this.#pending = this.#ask().then(
        (answer) => {
          this.#last = answer;
          this.#lastAskedAt = this.#askedAt;
          this.#pending = undefined;
        },
        () => {
          this.#last = undefined;
          this.#pending = undefined;
        },
      );
    }
    await Promise.race([this.#pending, within]);
  }
}
