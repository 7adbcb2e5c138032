/**
 * A large value on its way through promises, taken out by whoever uses it.
 *
 * A promise that waits for an answer is old to the garbage collector by the time it resolves, and what an old object still
 * refers to is copied into the old heap, even after the last reader has gone, and lies there until the whole heap is collected.
 * Of each answer that was three quarters of everything it allocated. An empty parcel keeps nothing.
 */
export class Parcel<T> {
  #value: { readonly it: T } | undefined;

  constructor(it: T) {
    this.#value = { it };
  }

  /** Once. */
  take(): T {
    const value = this.#value;
    if (value === undefined) throw new Error('a parcel was taken twice');
    this.#value = undefined;
    return value.it;
  }
}
