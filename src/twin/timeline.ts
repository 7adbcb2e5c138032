/** Means over equal slices of time. The length of a run is not known ahead: slices double when there are too many. */
import type { Stretch } from './tally.ts';

export interface TimelineSlice {
  readonly fromSeconds: number;
  readonly seconds: number;
  readonly running: number;
  readonly queued: number;
  readonly usedTokens: number;
  readonly tokensPerSecond: number;
}

/** Enough for a plot, few enough for a terminal and a JSON answer. */
const MOST_SLICES = 240;

interface Slice {
  running: number;
  queued: number;
  used: number;
  tokens: number;
}

export class Timeline {
  #sliceSeconds = 1;
  #slices: Slice[] = [];

  /** A stretch's tokens and use are spread evenly over it. */
  add(stretch: Stretch): void {
    const { fromSeconds, seconds, running, queued, generatedTokens } = stretch;
    const used = (stretch.usedBefore + stretch.usedAfter) / 2;
    const end = fromSeconds + seconds;
    while (end > this.#sliceSeconds * MOST_SLICES) this.#double();
    for (let from = fromSeconds; from < end; ) {
      const at = Math.floor(from / this.#sliceSeconds);
      const to = Math.min(end, (at + 1) * this.#sliceSeconds);
      const share = to - from;
      if (share <= 0) break; // the slice's edge is within one rounding of `from`
      const slice = this.#sliceAt(at);
      slice.running += running * share;
      slice.queued += queued * share;
      slice.used += used * share;
      slice.tokens += (generatedTokens * share) / seconds;
      from = to;
    }
  }

  slices(endSeconds: number): TimelineSlice[] {
    return this.#slices.map((slice, at) => {
      const fromSeconds = at * this.#sliceSeconds;
      const seconds = Math.min(this.#sliceSeconds, Math.max(endSeconds - fromSeconds, Number.MIN_VALUE));
      const [running, queued] = [slice.running / seconds, slice.queued / seconds];
      return { fromSeconds, seconds, running, queued, usedTokens: slice.used / seconds, tokensPerSecond: slice.tokens / seconds };
    });
  }

  #sliceAt(at: number): Slice {
    while (this.#slices.length <= at) this.#slices.push({ running: 0, queued: 0, used: 0, tokens: 0 });
    return this.#slices[at] as Slice;
  }

  #double(): void {
    const halved: Slice[] = [];
    this.#slices.forEach((slice, at) => {
      const into = halved[at >> 1];
      if (into === undefined) halved.push({ ...slice });
      else for (const key of ['running', 'queued', 'used', 'tokens'] as const) into[key] += slice[key];
    });
    this.#slices = halved;
    this.#sliceSeconds *= 2;
  }
}
