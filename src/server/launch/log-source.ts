/** A log that is read on from where it stopped the last time, wherever it lies: every byte once, whole, however long it grows. */
import type { Account } from '../../diagnosis/account.ts';

export interface LogSource {
  /** Bytes of it that were read. */
  readonly bytes: number;
  /** Returns whether everything that is there has been read. What is not there yet, or was moved away, reads as no news. */
  readOn(): Promise<boolean>;
  account(): Account;
}

/** Read in one look at most: a log of days is caught up over a few looks. */
export const MOST_BYTES_A_LOOK = 256 * 2 ** 20;
