/**
 * Lines of a server's log in bounded memory. Progress bars split at their carriage returns; bytes that are no UTF-8 become U+FFFD, for
 * a log is read and not kept. On failure: `log.unreadable`.
 */

import { type LogFacts, LogFactsReader, type LoggedEngine } from '../diagnosis/log-facts.ts';
import { splitLog } from '../engine/log-envelope.ts';
import { openLog } from './open-log.ts';

/** The longest line with facts is SGLang's list of its flags, tens of KB; what is longer is cut into lines of this length. */
const MOST_LINE = 1024 * 1024;

export async function* readLogLines(path: string, signal?: AbortSignal): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of openLog(path, signal)) {
    const text = rest + decoder.decode(chunk, { stream: true });
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
}

export async function readLogFacts(path: string, engine?: LoggedEngine, signal?: AbortSignal): Promise<LogFacts> {
  const reader = new LogFactsReader(engine);
  for await (const line of readLogLines(path, signal)) reader.add(line);
  return reader.read();
}
