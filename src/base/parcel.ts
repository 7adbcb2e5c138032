/**
 * A large value on its way through promises, taken out by whoever uses it.
 *
 * A promise that waits for an answer is old to the garbage collector by the time it resolves, and what an old object still
 * refers to is copied into the old heap, even after the last reader has gone, and lies there until the whole heap is collected.
 * Of each answer that was three quarters of everything it allocated. An empty parcel keeps nothing.
 */
export class Parcel<T> {
  // The value itself, not an object around it: made with a parcel in the old heap, that object would be there too, and keep it.
  #value: T | undefined;
  #isTaken = false;

  constructor(value: T) {
    this.#value = value;
  }

  /** Once. */
  take(): T {
    if (this.#isTaken) throw new Error('a parcel was taken twice');
    this.#isTaken = true;
    const value = this.#value as T;
    this.#value = undefined;
    return value;
  }
}
