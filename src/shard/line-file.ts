/**
 * `prompts/NAME.jsonl` and `rejected/NAME.ndjson`: written once by enrolment, with the discipline of a shard. The ledger
 * keeps how many bytes count (`promptsBytes`, `rejectedBytes`); opening cuts the rest away.
 */
import { AppendFile, type LinePlace } from './append-file.ts';

export interface LineFile {
  readonly path: string;
  /** Bytes that opening cut away: lines of a batch that the ledger never heard of. */
  readonly cutBytes: number;
  readonly durableBytes: number;
  /** Lines end in a newline. Durable when it resolves; one call at a time. */
  append(lines: readonly Buffer[]): Promise<readonly LinePlace[]>;
  /** Takes back what the ledger refused. */
  rollback(bytes: number): Promise<void>;
  close(): Promise<void>;
}

/** Creates the file and its folder where they are not there. */
export async function openLineFile(path: string, committedBytes: number): Promise<LineFile> {
  return await AppendFile.open(path, committedBytes);
}
