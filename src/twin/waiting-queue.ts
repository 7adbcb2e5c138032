/** Who waits for admission, first to be asked first. */
import type { Sequence } from './sequence.ts';

export class WaitingQueue {
  #items: Sequence[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  get first(): Sequence | undefined {
    return this.#items[this.#head];
  }

  push(sequence: Sequence): void {
    this.#items.push(sequence);
  }

  pushFront(sequence: Sequence): void {
    if (this.#head > 0) this.#items[--this.#head] = sequence;
    else this.#items.unshift(sequence);
  }

  shift(): void {
    this.#head += 1;
    // Taken entries are let go once they are the larger half: amortised constant.
    if (this.#head > 1024 && this.#head * 2 > this.#items.length) this.#compact();
  }

  remove(sequence: Sequence): void {
    this.#compact();
    const at = this.#items.indexOf(sequence);
    if (at !== -1) this.#items.splice(at, 1);
  }

  /** Puts them in a new order; `order` holds the same sequences. */
  reorder(order: (waiting: readonly Sequence[]) => Sequence[]): void {
    this.#compact();
    this.#items = order(this.#items);
  }

  #compact(): void {
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }
}
