/**
 * `aerie diagnose`: logs of one server → its state, the cause, the remedy. Reads only; no server is asked or started.
 * Memory does not grow with the logs.
 */
import { stat } from 'node:fs/promises';
import { AerieError } from '../base/errors.ts';
import type { NamedAccount } from '../diagnosis/account.ts';
import { diagnose, diagnoseServers } from '../diagnosis/diagnose.ts';
import { CarriedLog } from '../diagnosis/split-carriers.ts';
import type { Verdict } from '../diagnosis/verdict.ts';
import { checkRemedy } from './check-remedy.ts';
import { openLog } from './open-log.ts';

export interface DiagnoseInput {
  /** Paths; `-` is what is piped in. Several are ranks or nodes of one server. */
  readonly logs: readonly string[];
  /** The time by the log's own clock, as typed; left out: silence is not judged. */
  readonly now?: string;
}

export interface DiagnoseReport extends Verdict {
  readonly logs: readonly string[];
  readonly bytes: number;
}

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
    const reader = new CarriedLog(now === undefined ? {} : { now });
    bytes += await readInto(reader, log, signal);
    const carried = reader.end();
    accounts.push(...carried.map(({ carrier, account }) => ({ file: logs.length === 1 ? carrier : log, account })));
    if (log !== '-') lastWritten = Math.max(lastWritten ?? 0, wallClock(await stat(log).then(({ mtime }) => mtime)));
  }
  // One file: its containers are servers of their own. Several files: ranks or nodes of one server.
  const judge = logs.length === 1 ? diagnoseServers : diagnose;
  const verdict = judge(accounts, {
    checkRemedy,
    ...(now === undefined ? {} : { now }),
    ...(lastWritten === undefined ? {} : { lastWritten }),
  });
  const { samples } = verdict.facts;
  return { ...verdict, facts: { ...verdict.facts, samples: thin(samples, SAMPLES_TOLD) }, logs: [...logs], bytes };
}

async function readInto(reader: CarriedLog, log: string, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  for await (const chunk of openLog(log, signal)) {
    bytes += chunk.length;
    reader.feed(chunk);
  }
  return bytes;
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
