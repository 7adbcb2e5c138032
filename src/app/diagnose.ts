/**
 * `aerie diagnose`: logs of one server → its state, the cause, the remedy. Reads only; no server is asked or started.
 * Memory does not grow with the logs: they are streamed, and packed ones are unpacked on the way.
 */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { createGunzip } from 'node:zlib';
import { pipeline, Readable } from 'node:stream';
import { AerieError } from '../base/errors.ts';
import { diagnose, type NamedAccount } from '../diagnosis/diagnose.ts';
import { LogReader } from '../diagnosis/read-log.ts';
import type { Verdict } from '../diagnosis/verdict.ts';

export interface DiagnoseInput {
  /** Paths; `-` is what is piped in. Several are ranks or nodes of one server. */
  readonly logs: readonly string[];
  /** The time by the log's own clock, as typed; left out: silence is not judged. */
  readonly now?: string;
  /** What is piped in. */
  readonly stdin: AsyncIterable<Uint8Array>;
}

export interface DiagnoseReport extends Verdict {
  readonly logs: readonly string[];
  readonly bytes: number;
}

/** Large reads: a log of gigabytes is read at the disk's pace. */
const CHUNK_BYTES = 2 ** 20;
/** Readings in the answer, spread over the log. */
const SAMPLES_TOLD = 200;
const MOST_LOGS = 256;

export async function runDiagnose(input: DiagnoseInput, signal: AbortSignal): Promise<DiagnoseReport> {
  const { logs } = input;
  if (logs.length === 0 || logs.length > MOST_LOGS) throw wrongLogs(logs.length);
  const now = input.now === undefined ? undefined : parseNow(input.now);
  const accounts: NamedAccount[] = [];
  let bytes = 0;
  let lastWritten: number | undefined;
  for (const log of logs) {
    const reader = new LogReader(now === undefined ? {} : { now });
    bytes += await readInto(reader, log, input.stdin, signal);
    accounts.push({ file: logs.length === 1 ? '' : log, account: reader.end() });
    if (log !== '-') lastWritten = Math.max(lastWritten ?? 0, wallClock(await stat(log).then(({ mtime }) => mtime)));
  }
  const verdict = diagnose(accounts, {
    ...(now === undefined ? {} : { now }),
    ...(lastWritten === undefined ? {} : { lastWritten }),
  });
  const { samples } = verdict.facts;
  return { ...verdict, facts: { ...verdict.facts, samples: thin(samples, SAMPLES_TOLD) }, logs: [...logs], bytes };
}

async function readInto(reader: LogReader, log: string, stdin: DiagnoseInput['stdin'], signal: AbortSignal): Promise<number> {
  let bytes = 0;
  try {
    for await (const chunk of unpacked(log === '-' ? stdin : createReadStream(log, { highWaterMark: CHUNK_BYTES, signal }))) {
      if (bytes === 0) refuseOtherThanText(log, chunk);
      bytes += chunk.length;
      reader.feed(chunk);
    }
  } catch (thrown) {
    if (thrown instanceof AerieError || signal.aborted) throw thrown;
    throw unreadable(log, thrown);
  }
  return bytes;
}

/** gzip is known by its first two bytes, whatever the file is called. */
async function* unpacked(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const chunks = source[Symbol.asyncIterator]();
  const first = await chunks.next();
  if (first.done === true) return;
  const rest = async function* () {
    yield first.value;
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
  };
  if (first.value[0] !== 0x1f || first.value[1] !== 0x8b) {
    yield* rest();
    return;
  }
  const unpack = createGunzip({ chunkSize: CHUNK_BYTES });
  // What fails is told by the end that is read.
  pipeline(Readable.from(rest()), unpack, () => undefined);
  yield* unpack as AsyncIterable<Uint8Array>;
}

/** UTF-16, as PowerShell writes it, has a zero in every second byte; a core dump has many. */
function refuseOtherThanText(log: string, chunk: Uint8Array): void {
  const head = chunk.subarray(0, 4096);
  const zeros = head.reduce((count, byte) => (byte === 0 ? count + 1 : count), 0);
  if (zeros * 10 <= head.length) return;
  throw new AerieError('log.unreadable', `${named(log)} is not text that can be read as a log.`, {
    because: `${zeros} of its first ${head.length} bytes are zero: it is UTF-16 or not text at all.`,
    remedy: 'Give the log as UTF-8 (iconv -f UTF-16 -t UTF-8 FILE), plain or packed with gzip.',
  });
}

function unreadable(log: string, thrown: unknown): AerieError {
  const code = (thrown as { code?: unknown }).code;
  const because = code === 'ENOENT' ? 'There is no such file.' : thrown instanceof Error ? thrown.message : String(thrown);
  const remedy = 'Give the path of a server’s log, plain or gzip; - reads what is piped in.';
  return new AerieError('log.unreadable', `${named(log)} cannot be read.`, { because, remedy }, thrown);
}

function named(log: string): string {
  return log === '-' ? 'What is piped in' : log;
}

function wrongLogs(count: number): AerieError {
  const message = count === 0 ? 'No log was named.' : `${count} logs are more than ${MOST_LOGS}.`;
  return new AerieError('usage.flag', message, {
    remedy: 'aerie diagnose server.log     (several ranks: name each file; - reads a pipe)',
  });
}

const TIME = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?)?\s?(?:Z|[+-]\d\d:?\d\d)?$/;

/** By the log's own clock: logs seldom name their zone, so a zone is not reckoned with. `now` is this machine's wall clock. */
function parseNow(text: string): number {
  if (text === 'now') return wallClock(new Date());
  const found = TIME.exec(text.trim());
  const [year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0] = (found ?? [])
    .slice(1)
    .map((part) => Number(part ?? 0));
  const at = Date.UTC(year, month - 1, day, hour, minute, second);
  if (found !== null && !Number.isNaN(at)) return at;
  throw new AerieError('usage.flag', `--now '${text}' is not a time.`, {
    remedy: 'Give the time as the log writes it, like --now "2026-01-30 01:13:16"; --now now takes this machine’s clock.',
  });
}

/** What the wall clock shows, as the log's own times are read. */
function wallClock(date: Date): number {
  return date.getTime() - date.getTimezoneOffset() * 60_000;
}

function thin<T>(values: readonly T[], most: number): T[] {
  if (values.length <= most) return [...values];
  const step = values.length / most;
  return Array.from({ length: most }, (_, at) => values[Math.floor((at + 1) * step) - 1] as T);
}
