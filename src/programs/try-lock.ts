/**
 * For `aerie doctor`: `node dist/programs/try-lock.js FOLDER` takes the lock of a run folder as a worker would, says `taken` or
 * `refused` on stdout (or the code of another error), and gives it back. Always exit 0: the word is the answer.
 */
import { AerieError } from '../base/errors.ts';
import { holdRun } from '../ledger/sqlite/worker-lock.ts';

function tryLock(folder: string): string {
  try {
    holdRun(folder, { pid: process.pid, host: 'doctor', startedAt: 0 }).release();
    return 'taken';
  } catch (thrown) {
    if (!(thrown instanceof AerieError)) return String(thrown);
    return thrown.code === 'ledger.held-elsewhere' ? 'refused' : `${thrown.code} ${thrown.message}`;
  }
}

process.stdout.write(`${tryLock(process.argv[2] ?? '.')}\n`);
