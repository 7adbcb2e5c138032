/**
 * Lines of a server's log, from a file, a .gz or stdin (`-`), in bounded memory.
 * Progress bars split at their carriage returns; bytes that are no UTF-8 become U+FFFD, for a log is read and not kept.
 * On failure: `log.unreadable`.
 */
import { createReadStream } from 'node:fs';
import { pipeline, Transform } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { AerieError, systemCodeOf } from '../base/errors.ts';
import { splitLog } from '../engine/log-envelope.ts';
import { LogFactsReader, type LogFacts, type LoggedEngine } from '../diagnosis/log-facts.ts';

/** The longest line with facts is SGLang's list of its flags, tens of KB; what is longer is cut into lines of this length. */
const MOST_LINE = 1024 * 1024;

export async function* readLogLines(path: string, signal?: AbortSignal): AsyncGenerator<string, void, undefined> {
  let rest = '';
  try {
    for await (const piece of openText(path, signal)) {
      const text = rest + piece;
      const isHalved = text.endsWith('\r'); // its line feed may come with the next piece
      const lines = splitLog(isHalved ? text.slice(0, -1) : text);
      rest = `${lines.pop() ?? ''}${isHalved ? '\r' : ''}`;
      yield* lines;
      if (rest.length > MOST_LINE) {
        yield rest;
        rest = '';
      }
    }
    if (rest !== '') yield rest;
  } catch (thrown) {
    signal?.throwIfAborted();
    throw unreadable(path, thrown);
  }
}

export async function readLogFacts(path: string, engine?: LoggedEngine, signal?: AbortSignal): Promise<LogFacts> {
  const reader = new LogFactsReader(engine);
  for await (const line of readLogLines(path, signal)) reader.add(line);
  return reader.read();
}

function openText(path: string, signal: AbortSignal | undefined): AsyncIterable<string> {
  const bytes = path === '-' ? process.stdin : createReadStream(path, signal === undefined ? {} : { signal });
  const decoder = new TextDecoder();
  const text = new Transform({
    readableObjectMode: true,
    transform: (chunk: Uint8Array, _encoding, done) => done(null, decoder.decode(chunk, { stream: true })),
  });
  const done = () => undefined; // a failure reaches the reader of `text`
  return path.endsWith('.gz') ? pipeline(bytes, createGunzip(), text, done) : pipeline(bytes, text, done);
}

function unreadable(path: string, thrown: unknown): AerieError {
  const code = systemCodeOf(thrown);
  const because = thrown instanceof Error ? thrown.message : String(thrown);
  return new AerieError(
    'log.unreadable',
    code === 'ENOENT' ? `There is no log ${path}.` : `The log ${path} cannot be read${code === '' ? '' : `: ${code}`}.`,
    { because, remedy: 'Give the file that holds the server’s own output, plain or .gz, or - for stdin.', facts: { path } },
    thrown,
  );
}
