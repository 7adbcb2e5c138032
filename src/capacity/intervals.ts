/** Figures that stand for intervals: rounding of printed numbers, and guesses. Pure. */
import type { Measured } from './facts.ts';
import type { Interval } from './prediction.ts';

/** Engines print two decimals: 72.33 may be anything from 72.325 to 72.335. A figure with more decimals is taken as that much finer. */
export function fromPrinted(value: number): Measured {
  const decimals = Math.max(2, (String(value).split('.')[1] ?? '').length);
  return { value, halfWidth: 0.5 * 10 ** -Math.min(decimals, 9) };
}

export function guessed(value: number, halfWidth: number): Measured {
  return { value, halfWidth };
}

export function rangeOf({ value, halfWidth }: Measured): Interval {
  return { low: value - halfWidth, high: value + halfWidth };
}

export function middleOf({ low, high }: Interval): number {
  return (low + high) / 2;
}

export function plus(a: Interval, b: Interval): Interval {
  return { low: a.low + b.low, high: a.high + b.high };
}

export function minus(a: Interval, b: Interval): Interval {
  return { low: a.low - b.high, high: a.high - b.low };
}

export function times(a: Interval, factor: number): Interval {
  return factor >= 0 ? { low: a.low * factor, high: a.high * factor } : { low: a.high * factor, high: a.low * factor };
}

export const exactly = (value: number): Interval => ({ low: value, high: value });
