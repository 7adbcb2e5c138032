/** What reaches the engine from outside, by time: requests and aborts. Equal times keep their order. */
import type { TwinRequest } from './load.ts';

export type Input =
  | { readonly at: number; readonly kind: 'request'; readonly request: TwinRequest }
  | { readonly at: number; readonly kind: 'abort'; readonly id: string };

export class Inputs {
  #items: Input[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  /** When the next one is due; Infinity = none. */
  get nextAt(): number {
    return this.#items[this.#head]?.at ?? Number.POSITIVE_INFINITY;
  }

  add(input: Input): void {
    let at = this.#items.length;
    while (at > this.#head && (this.#items[at - 1]?.at ?? 0) > input.at) at -= 1;
    if (at === this.#items.length) this.#items.push(input);
    else this.#items.splice(at, 0, input);
  }

  take(upTo: number): Input | undefined {
    const next = this.#items[this.#head];
    if (next === undefined || next.at > upTo) return undefined;
    this.#head += 1;
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return next;
  }
}
