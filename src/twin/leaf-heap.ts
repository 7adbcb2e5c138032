/** Least recently touched first. Entries age in place: one that no longer holds is dropped when it comes up. */

interface Aged {
  touched: number;
}

interface Entry<T> {
  readonly item: T;
  readonly touched: number;
}

export class LeafHeap<T extends Aged> {
  readonly #holds: (item: T) => boolean;
  #entries: Entry<T>[] = [];
  /** Entries above which the dropped ones are swept out, so that the heap stays as large as what it is about. */
  #sweepAt = 1024;

  constructor(holds: (item: T) => boolean) {
    this.#holds = holds;
  }

  push(item: T): void {
    if (this.#entries.length >= this.#sweepAt) this.#sweep();
    this.#entries.push({ item, touched: item.touched });
    this.#rise(this.#entries.length - 1);
  }

  /** Takes the oldest that still holds. */
  oldest(): T | undefined {
    for (;;) {
      const [first] = this.#entries;
      if (first === undefined) return undefined;
      const last = this.#entries.pop();
      if (this.#entries.length > 0 && last !== undefined) {
        this.#entries[0] = last;
        this.#sink(0);
      }
      if (first.touched === first.item.touched && this.#holds(first.item)) return first.item;
    }
  }

  #sweep(): void {
    const kept = new Map<T, Entry<T>>();
    for (const entry of this.#entries)
      if (entry.touched === entry.item.touched && this.#holds(entry.item)) kept.set(entry.item, entry);
    this.#entries = [...kept.values()].sort((a, b) => a.touched - b.touched); // ascending order is a heap
    this.#sweepAt = Math.max(1024, 2 * this.#entries.length);
  }

  #rise(from: number): void {
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#swapIfOlder(at, parent)) return;
      at = parent;
    }
  }

  #sink(from: number): void {
    let at = from;
    for (;;) {
      const left = 2 * at + 1;
      const right = left + 1;
      const older = this.#touchedAt(right) < this.#touchedAt(left) ? right : left;
      if (!this.#swapIfOlder(older, at)) return;
      at = older;
    }
  }

  #touchedAt(at: number): number {
    return this.#entries[at]?.touched ?? Number.POSITIVE_INFINITY;
  }

  /** Swaps when the entry at `a` is older than the one at `b`. */
  #swapIfOlder(a: number, b: number): boolean {
    const [first, second] = [this.#entries[a], this.#entries[b]];
    if (first === undefined || second === undefined || first.touched >= second.touched) return false;
    this.#entries[a] = second;
    this.#entries[b] = first;
    return true;
  }
}
