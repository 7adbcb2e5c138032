/** One file of a source, wherever it lies. */
import type { Format } from './formats.ts';
import type { FileStat } from './source-differs.ts';

export interface SourceFile {
  /** How it is called in a pin and for people. */
  readonly path: string;
  readonly format: Format;
  readonly stat: FileStat;
  /** Gives the path on this machine; a file of the hub is fetched when its turn comes. */
  obtain(signal: AbortSignal | undefined): Promise<string>;
}

/** The same order on every machine, whatever its language. */
export function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
