/** How far a start has come: the phase by the last marker, its bar, kernels that are compiled, readiness. Pure. */
import type { Sighting } from './account.ts';
import type { Marker } from './phases.ts';
import { phaseOrder } from './phases.ts';
import type { Phase, Progress } from './verdict.ts';

export class PhaseTrack {
  phase: Phase | '' = '';
  began: Sighting | undefined;
  hasEnded = false;
  progress: Progress | undefined;
  secondsEach: number | undefined;
  lastBar: Sighting | undefined;
  compiling: Sighting | undefined;
  ready: Sighting | undefined;

  copy(): PhaseTrack {
    return Object.assign(new PhaseTrack(), this);
  }

  /** Returns whether the start moved on. */
  mark({ phase, isWeak, ends }: Marker, sighting: Sighting): boolean {
    if (isWeak === true && phaseOrder(phase) < phaseOrder(this.phase)) return false;
    if (phase !== this.phase) {
      this.phase = phase;
      this.began = sighting;
      this.hasEnded = false;
      this.progress = undefined;
      this.secondsEach = undefined;
      this.lastBar = undefined;
      this.compiling = undefined;
    }
    if (ends === true) {
      this.hasEnded = true;
      this.compiling = undefined;
    }
    return true;
  }

  /** A bar that moves is progress; one that is only drawn again is not. */
  bar(done: number, of: number, sighting: Sighting): boolean {
    const moved = this.progress === undefined || done !== this.progress.done || of !== this.progress.of;
    this.progress = { done, of };
    this.lastBar = sighting;
    this.secondsEach = readPace(sighting.text) ?? this.secondsEach;
    if (moved && done > 0) this.compiling = undefined;
    return moved;
  }

  /** Undefined: it is over. */
  compile(sighting: Sighting | undefined): void {
    this.compiling = sighting;
  }

  beReady(sighting: Sighting): void {
    this.ready ??= sighting;
    this.compiling = undefined;
  }
}

/** `103.00s/it` or `8.27it/s`. */
function readPace(text: string): number | undefined {
  const slow = /([\d.]+)s\/it/.exec(text)?.[1];
  if (slow !== undefined) return Number(slow);
  const fast = /([\d.]+)it\/s/.exec(text)?.[1];
  return fast === undefined || Number(fast) === 0 ? undefined : 1 / Number(fast);
}
