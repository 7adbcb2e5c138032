/**
 * Two unknowns decide a launch's pool: free memory before the weights (x) and after them (y). Each measurement and each guess
 * bounds a sum a·x + b·y. Asked for the least and the most that another such sum can be, this walks the corners of the region that
 * all bounds leave. Pure.
 * Promises: the answer is exact (a region in the plane bounded by lines has its extremes at corners); bounds that contradict each other by a
 * little (figures of two ranks, say) are widened together until they meet, and `slack` says by how much; undefined beyond 8 GiB.
 */
import type { Interval } from './prediction.ts';

export interface Bound {
  readonly x: number;
  readonly y: number;
  readonly range: Interval;
}

export interface Region {
  /** Least and most of a·x + b·y over the region. */
  extremes(x: number, y: number): Interval;
  /** GiB by which each bound was widened so that all of them can hold. */
  readonly slack: number;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** GiB, doubled until the bounds meet; figures of two ranks, or of two starts, do not differ by more than the last. */
const FIRST_SLACK = 0.005;
const MOST_SLACK = 8;
/** Below what floating point leaves of figures of some hundred GiB. */
const EPSILON = 1e-9;

/** `bounds` must hold x and y from both sides, or the region has no corners on every side. */
export function solveMemory(bounds: readonly Bound[]): Region | undefined {
  for (let slack = 0; slack <= MOST_SLACK; slack = slack === 0 ? FIRST_SLACK : slack * 2) {
    const widened = bounds.map((bound) => ({
      ...bound,
      range: { low: bound.range.low - slack, high: bound.range.high + slack },
    }));
    const corners = findCorners(widened);
    if (corners.length > 0) return { slack, extremes: (x, y) => extremesOf(corners, x, y) };
  }
  return undefined;
}

function findCorners(bounds: readonly Bound[]): Point[] {
  const lines = bounds.flatMap(({ x, y, range }) => [
    { x, y, at: range.low },
    { x, y, at: range.high },
  ]);
  const corners: Point[] = [];
  for (const [first, one] of lines.entries()) {
    for (const other of lines.slice(first + 1)) {
      const determinant = one.x * other.y - other.x * one.y;
      if (Math.abs(determinant) < EPSILON) continue;
      const point = {
        x: (one.at * other.y - other.at * one.y) / determinant,
        y: (one.x * other.at - other.x * one.at) / determinant,
      };
      if (bounds.every((bound) => holds(bound, point))) corners.push(point);
    }
  }
  return corners;
}

function holds({ x, y, range }: Bound, point: Point): boolean {
  const value = x * point.x + y * point.y;
  return value >= range.low - EPSILON && value <= range.high + EPSILON;
}

function extremesOf(corners: readonly Point[], x: number, y: number): Interval {
  const values = corners.map((point) => x * point.x + y * point.y);
  return { low: Math.min(...values), high: Math.max(...values) };
}
