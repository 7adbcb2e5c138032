/**
 * Who may use a connection now. One at first, so that the first script makes the connection which the others then share; a few
 * once it is there: sshd takes ten sessions on one connection (MaxSessions), and other sessions of the user's may be among them.
 */
export class Slots {
  readonly #most: number;
  #width = 1;
  #taken = 0;
  readonly #waiting = new Set<() => void>();

  constructor(most: number) {
    this.#most = most;
  }

  /** True when the slot is taken; false where the signal aborts first. */
  take(signal: AbortSignal | undefined): Promise<boolean> {
    if (signal?.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const give = () => {
        signal?.removeEventListener('abort', leave);
        this.#taken += 1;
        resolve(true);
      };
      const leave = () => {
        this.#waiting.delete(give);
        resolve(false);
      };
      this.#waiting.add(give);
      signal?.addEventListener('abort', leave, { once: true });
      this.#serve();
    });
  }

  give(): void {
    this.#taken -= 1;
    this.#serve();
  }

  /** The connection is there, or is not any more. */
  set isConnected(isConnected: boolean) {
    this.#width = isConnected ? this.#most : 1;
    this.#serve();
  }

  #serve(): void {
    for (const give of this.#waiting) {
      if (this.#taken >= this.#width) return;
      this.#waiting.delete(give);
      give();
    }
  }
}
