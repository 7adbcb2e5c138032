/** `docker logs`: entries of a json-file log, stdout's to stdout and stderr's to stderr, once or as they come. */
import { readSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { refusal } from './run-options.mjs';

/** `isOver`: nothing more will be written. Ends when all was told and it is. */
export async function tellLog(file, { since = '', until = '', tail = Infinity, stamps = false, isOver }) {
  const [first, last] = [instant(since, '0'), instant(until, '9')];
  let held = [];
  const tell = ({ log, stream, time }) => process[stream].write(stamps ? `${time} ${log}` : log);
  for await (const entry of entriesOf(file, isOver)) {
    if (entry === undefined) {
      for (const one of tail === Infinity ? held : held.slice(-tail)) tell(one);
      held = undefined;
    } else if (entry.time >= first && entry.time <= last) held === undefined ? tell(entry) : held.push(entry);
  }
}

/** What is there, then `undefined`, then what comes. */
async function* entriesOf(file, isOver) {
  const bytes = Buffer.alloc(65_536);
  let rest = Buffer.alloc(0);
  let wasOver = false;
  let isThrough = false;
  for (;;) {
    const length = readSync(file, bytes, 0, bytes.length, null);
    rest = Buffer.concat([rest, bytes.subarray(0, length)]);
    for (let newline = rest.indexOf(0x0a); newline >= 0; newline = rest.indexOf(0x0a)) {
      yield JSON.parse(rest.subarray(0, newline).toString('utf8'));
      rest = rest.subarray(newline + 1);
    }
    if (length > 0) continue;
    if (!isThrough) yield undefined;
    isThrough = true;
    if (wasOver) return;
    wasOver = isOver();
    if (!wasOver) await delay(20);
  }
}

/** RFC 3339 with any number of decimals, seconds since 1970 with decimals, or `10m` ago → RFC 3339 with nanoseconds, so that texts compare. */
function instant(text, fill) {
  if (text === '') return fill === '0' ? '' : '~';
  const ago = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(text);
  if (ago !== null && !/^\d+$/.test(text)) {
    const [, hours = 0, minutes = 0, seconds = 0] = ago.map((part) => Number(part ?? 0));
    return new Date(Date.now() - ((hours * 60 + minutes) * 60 + seconds) * 1000).toISOString();
  }
  const unix = /^(\d+)(?:\.(\d{1,9}))?$/.exec(text);
  if (unix !== null) return withNanos(new Date(Number(unix[1]) * 1000).toISOString().slice(0, 19), unix[2]);
  const written = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/.exec(text);
  if (written === null) throw refusal(`invalid value for "since": failed to parse value as time or duration: ${text}`, 1);
  return withNanos(written[1], written[2]);
}

const withNanos = (seconds, decimals = '') => `${seconds}.${decimals.padEnd(9, '0')}Z`;
