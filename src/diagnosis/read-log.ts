/**
 * Bytes of one log → an account of what it shows, at any time. Pure: no file, no clock. Memory does not grow with the log.
 * Promises: the whole log is read, never a tail; an unknown line is kept in count and never fatal; an account that was given in
 * between changes nothing, and costs a copy of what is kept (some thousand references), not of the log.
 */
import type { Account } from './account.ts';
import { LineScan } from './scan-lines.ts';
import { AccountTrack, type ReadOptions as TrackOptions } from './track-account.ts';
import { watch } from './watch.ts';

export interface ReadOptions extends TrackOptions {
  /** The number of the first line that is fed, where reading begins in the middle of a file. */
  readonly firstLine?: number;
}

export class LogReader {
  readonly #track: AccountTrack;
  readonly #scan: LineScan;

  constructor({ firstLine = 1, ...options }: ReadOptions = {}) {
    this.#track = new AccountTrack(options);
    this.#scan = new LineScan(watch().anchors, (found) => this.#track.take(found), firstLine);
  }

  feed(chunk: Uint8Array): void {
    this.#scan.feed(chunk);
  }

  /** What the log shows so far; more may be fed afterwards. */
  account(): Account {
    return this.#track.copy().finish(this.#scan.rest());
  }
}
