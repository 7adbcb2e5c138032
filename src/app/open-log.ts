/**
 * The bytes of a server's log: a file, what is piped in (`-`), plain or packed with gzip, which is known by its first two
 * bytes and not by its name. Streamed; memory does not grow with the log. On failure: `log.unreadable`.
 */
import { createReadStream } from 'node:fs';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { AerieError, systemCodeOf } from '../base/errors.ts';

/** Large reads: a log of gigabytes is read at the disk's pace. */
const CHUNK_BYTES = 2 ** 20;

export async function* openLog(path: string, signal?: AbortSignal): AsyncGenerator<Uint8Array, void, undefined> {
  const options = { highWaterMark: CHUNK_BYTES, ...(signal === undefined ? {} : { signal }) };
  let isFirst = true;
  try {
    for await (const chunk of unpacked(path === '-' ? process.stdin : createReadStream(path, options))) {
      if (isFirst) refuseOtherThanText(path, chunk);
      isFirst = false;
      yield chunk;
    }
  } catch (thrown) {
    signal?.throwIfAborted();
    throw thrown instanceof AerieError ? thrown : unreadable(path, thrown);
  }
}

async function* unpacked(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const chunks = source[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) return;
  const all = async function* () {
    yield first.value;
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
  };
  if (first.value[0] !== 0x1f || first.value[1] !== 0x8b) return yield* all();
  const unpack = createGunzip({ chunkSize: CHUNK_BYTES });
  // What fails is told by the end that is read.
  pipeline(Readable.from(all()), unpack, () => undefined);
  yield* unpack as AsyncIterable<Uint8Array>;
}

/** UTF-16, as PowerShell writes it, has a zero in every second byte; a core dump has many. */
function refuseOtherThanText(path: string, chunk: Uint8Array): void {
  const head = chunk.subarray(0, 4096);
  const zeros = head.reduce((count, byte) => (byte === 0 ? count + 1 : count), 0);
  if (zeros * 10 <= head.length) return;
  throw new AerieError('log.unreadable', `${named(path)} is not text that can be read as a log.`, {
    because: `${zeros} of its first ${head.length} bytes are zero: it is UTF-16 or no text at all.`,
    remedy: 'Give the log as UTF-8 (iconv -f UTF-16 -t UTF-8 FILE), plain or packed with gzip.',
  });
}

function unreadable(path: string, thrown: unknown): AerieError {
  const code = systemCodeOf(thrown);
  const because = thrown instanceof Error ? thrown.message : String(thrown);
  return new AerieError(
    'log.unreadable',
    code === 'ENOENT' ? `There is no log ${path}.` : `${named(path)} cannot be read${code === '' ? '' : `: ${code}`}.`,
    { because, remedy: 'Give the file that holds the server’s own output, plain or .gz, or - for stdin.', facts: { path } },
    thrown,
  );
}

function named(path: string): string {
  return path === '-' ? 'What is piped in' : `The log ${path}`;
}
