/** What it means that stdout took no more. Pure. A file that is cut short with exit 0 would pass for the whole answer. */
import { AerieError } from '../base/errors.ts';

/** Nobody reads any more: the reader of a pipe has ended, as `head` does when it has enough. */
export function isReaderGone(code: string): boolean {
  return code === 'EPIPE' || code === 'ECONNRESET';
}

/** undefined: nobody is there to miss it, or it is what follows a failure that was told (ERR_STREAM_DESTROYED). */
export function explainLostAnswer(code: string, isTerminal: boolean): AerieError | undefined {
  if (isTerminal || isReaderGone(code) || !/^E[A-Z0-9]+$/.test(code)) return undefined;
  const isFull = code === 'ENOSPC' || code === 'EDQUOT' || code === 'EFBIG';
  const remedy = 'What stdout leads to is not whole; delete it. Give the same command again, to a file on another disk.';
  return new AerieError(isFull ? 'disk.full' : 'disk.failed', `The answer could not be written to stdout (${code}).`, { remedy });
}
