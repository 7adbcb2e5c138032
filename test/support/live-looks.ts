/** Looks at a server, minute by minute, with only what a test says of them. */

import { judgeLook, type LookInput } from '../../src/diagnosis/live/judge-look.ts';
import type { Health, LiveVerdict, Look, ProcessSigns } from '../../src/diagnosis/live/look.ts';
import { accountOf } from './diagnose-log.ts';

export interface Sketch {
  readonly process?: Partial<ProcessSigns>;
  readonly health?: Health | undefined;
  readonly generated?: number;
  readonly prompted?: number;
  readonly running?: number;
  readonly waiting?: number;
  readonly inFlight?: number;
  readonly answered?: number;
  readonly logBytes?: number;
  readonly logProgress?: number;
  /** No process of it is known. */
  readonly isUnseen?: boolean;
}

export const WELL: Health = { kind: 'http', status: 200, afterMs: 5 };
export const BUSY: Health = { kind: 'timeout', afterMs: 25_000 };
export const STARTING: Health = { kind: 'http', status: 503, afterMs: 5 };
export const REFUSED: Health = { kind: 'refused', afterMs: 1 };

const PROCESS: ProcessSigns = {
  presence: 'running',
  exitStatus: undefined,
  residentBytes: 10 * 2 ** 30,
  readBytes: 2 ** 30,
  gpuUsedMiB: 8 * 80_000,
  compilers: 0,
  children: 9,
};

/** Each sketch stands until the next one; `[seconds, sketch]`. */
export function looksOf(history: readonly (readonly [number, Sketch])[]): Look[] {
  return history.map(([seconds, sketch]) => {
    const { generated, prompted, running, waiting } = sketch;
    const isCounted = [generated, prompted, running, waiting].some((one) => one !== undefined);
    return {
      atMs: seconds * 1000,
      logBytes: sketch.logBytes ?? 0,
      logProgress: sketch.logProgress ?? 0,
      process: sketch.isUnseen === true ? undefined : { ...PROCESS, ...sketch.process },
      health: sketch.health,
      counters: isCounted ? { generatedTokens: generated, promptTokens: prompted, running, waiting } : undefined,
      asked: { inFlight: sketch.inFlight ?? 0, answered: sketch.answered ?? 0 },
    };
  });
}

/** One sketch, looked at again and again over so many seconds. */
export function standing(from: number, seconds: number, sketch: Sketch, every = 10): (readonly [number, Sketch])[] {
  return Array.from({ length: Math.floor(seconds / every) + 1 }, (_, at) => [from + at * every, sketch] as const);
}

export function judged(log: string, history: readonly (readonly [number, Sketch])[], more: Partial<LookInput> = {}): LiveVerdict {
  return judgeLook({ account: accountOf(log), looks: looksOf(history), ...more });
}
