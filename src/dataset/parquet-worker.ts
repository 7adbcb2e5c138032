/** The thread in which a Parquet file is read: hands over a group of rows each time it is asked. Started by `parquet-rows.ts`. */
import { parentPort, workerData } from 'node:worker_threads';
import { AerieError } from '../base/errors.ts';
import { readParquetFile } from './parquet-file.ts';
import type { ParquetTask, ToldByWorker } from './parquet-rows.ts';

const { skipRows, ...file } = workerData as ParquetTask;
const reader = readParquetFile({ ...file, signal: undefined });
const groups = reader.rows(skipRows)[Symbol.asyncIterator]();

parentPort?.on('message', () => {
  void next().then((told) => parentPort?.postMessage(told));
});

async function next(): Promise<ToldByWorker> {
  try {
    const { done, value } = await groups.next();
    return done === true ? { kind: 'end', hashed: reader.hashed() } : { kind: 'rows', rows: value, hashed: reader.hashed() };
  } catch (thrown) {
    if (!(thrown instanceof AerieError)) throw thrown;
    const { code, message, detail } = thrown;
    return { kind: 'failed', code, message, detail };
  }
}
