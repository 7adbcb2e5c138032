/**
 * The rows of a Parquet file, decoded in a thread of its own. A few changed bytes can make the decoder write two thousand
 * million values that the file does not have: in the thread of the run nothing could end that.
 *
 * Promises: what `parquet-file.ts` promises; the run's own thread is never held up by decoding; an abort ends the thread.
 * On failure: as there; a thread that does not come back in `patienceMs`, or that runs out of memory, is `source.unreadable`.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { AerieError, type ErrorCode, type ErrorDetail } from '../base/errors.ts';
import { damagedParquet, endlessParquet } from './damaged-source.ts';
import type { ParquetOptions } from './parquet-file.ts';
import type { RawRow, RowReader } from './raw-row.ts';

/** A row group of a GiB, the largest that is read, takes a minute on a slow machine. */
const PATIENCE_MS = 300_000;
const THREAD = new URL('./parquet-worker.js', import.meta.url);

export type ParquetTask = Omit<ParquetOptions, 'signal'> & { readonly skipRows: number };

type Hashed = ReturnType<RowReader['hashed']>;

export type ToldByWorker =
  | { readonly kind: 'rows'; readonly rows: readonly RawRow[]; readonly hashed: Hashed }
  | { readonly kind: 'end'; readonly hashed: Hashed }
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly message: string; readonly detail: ErrorDetail };

export function readParquetRows(options: ParquetOptions, patienceMs = PATIENCE_MS): RowReader {
  let hashed: Hashed = { sha256: createHash('sha256').digest('hex'), hashedBytes: 0 };

  async function* rows(skipRows: number): AsyncGenerator<readonly RawRow[], void, undefined> {
    const { signal, ...file } = options;
    const worker = new Worker(THREAD, { workerData: { ...file, skipRows } satisfies ParquetTask });
    try {
      for (;;) {
        const told = await askWorker(worker, options, patienceMs);
        if (told.kind === 'failed') throw new AerieError(told.code, told.message, told.detail);
        hashed = told.hashed;
        if (told.kind === 'end') return;
        yield told.rows;
      }
    } finally {
      await worker.terminate();
    }
  }

  return { rows, hashed: () => hashed };
}

async function askWorker(worker: Worker, { path, bytes, signal }: ParquetOptions, patienceMs: number): Promise<ToldByWorker> {
  signal?.throwIfAborted();
  const late = AbortSignal.timeout(patienceMs);
  const answer = once(worker, 'message', { signal: signal === undefined ? late : AbortSignal.any([signal, late]) });
  worker.postMessage('next');
  try {
    const [told] = (await answer) as [ToldByWorker];
    return told;
  } catch (thrown) {
    signal?.throwIfAborted();
    throw late.aborted ? endlessParquet(path, bytes, patienceMs) : damagedParquet(path, bytes, thrown);
  }
}
