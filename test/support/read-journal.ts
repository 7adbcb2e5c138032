/** Reads the lookalike's journal back: JSON.parse and nothing of the program's own. The format is in docs/lookalike.md. */
import { existsSync, readFileSync } from 'node:fs';

interface JournalHead {
  readonly at: number;
  readonly pid: number;
  readonly life: string;
  readonly request: number;
  readonly path: string;
  readonly hash: string;
  readonly seed: number | null;
}

export interface IdsFingerprint {
  readonly count: number;
  /** sha256 hex of JSON.stringify(ids). */
  readonly sha256: string;
}

export type JournalLine =
  | (JournalHead & { readonly event: 'received'; readonly input: unknown })
  | (JournalHead & { readonly event: 'aborted'; readonly because: 'client-gone' | 'cut' | 'reset' })
  | (JournalHead & {
      readonly event: 'answered';
      readonly status: number;
      readonly fault: string;
      readonly finish?: 'stop' | 'length';
      readonly promptIds?: IdsFingerprint;
      readonly outputIds?: IdsFingerprint;
      readonly textSha256?: string;
    });

/** Every line; a file that is not there has none. A line that is not JSON throws: the journal promises whole lines. */
export function readJournal(path: string): JournalLine[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as JournalLine);
}
