/**
 * The log that docker or the journal keeps, looked at once: its beginning and its end in one command, then what has come since. Bounded in
 * bytes and in time; `read-server-log.ts` is for whoever has the time to read all of it.
 * Promises: no line twice, the half of none; what was left out between the two is known in lines where all of it passed by in time.
 * On failure: empty, with what the program said.
 */
import type { Machine } from '../../machine/machine.ts';
import { type PrintedEnds, readPrintedEnds, renderPrintedEnds } from '../../machine/survey/printed-ends.ts';
import { FROM_BEGINNING, takeDockerLines } from './docker-lines.ts';
import { takeJournalEntries } from './journal-lines.ts';
import { dockerReader, entriesOf, JOURNAL_WORDS, journalReader, type Piece } from './read-server-log.ts';
import type { ServerLog } from './server-log.ts';

/** A log that a program keeps and shows. */
export type KeptLog = Extract<ServerLog, { kind: 'docker' | 'journal' }>;

export interface LogEnds {
  readonly beginning: Uint8Array;
  readonly ending: Uint8Array;
  /** Lines between the two that were not read; undefined = not counted in time. */
  readonly between: number | undefined;
  /** Epoch milliseconds of its last line; 0 = not told. */
  readonly writtenAt: number;
  /** Why there is nothing; '' = there is. */
  readonly because: string;
  /** What has come since. */
  readonly readOn: (machine: Pick<Machine, 'run'>) => Promise<Piece>;
}

/** More lines than the bytes hold that an end may have. */
const LAST_LINES = 20_000;
/** For the way there and back. */
const AROUND_MS = 3_000;

export async function readLogEnds(
  machine: Pick<Machine, 'run'>,
  log: KeptLog,
  { nonce, waitSeconds }: { readonly nonce: string; readonly waitSeconds: number },
): Promise<LogEnds> {
  const script = renderPrintedEnds({ nonce, waitSeconds, ...wordsOf(log) });
  const timeoutMs = waitSeconds * 1000 + AROUND_MS;
  const result = await machine.run({ file: 'sh', args: ['-c', script], timeoutMs });
  const printed = result.kind === 'ended' ? readPrintedEnds(result.stdout, nonce) : undefined;
  const joined = joinEnds(printed ?? NOTHING, log.kind === 'docker' ? isDockerLine : isEntry);
  const whose = log.kind === 'docker' ? ofDocker(log, joined) : ofJournal(log, joined);
  const isEmpty = whose.beginning.length + whose.ending.length === 0;
  return { ...whose, between: joined.between, because: isEmpty ? whyNothing(printed, waitSeconds) : '' };
}

const NOTHING: PrintedEnds = { beginning: '', ending: '', lines: 0 };

function wordsOf(log: KeptLog): { readonly whole: readonly string[]; readonly last: readonly string[] } {
  if (log.kind === 'docker') {
    const words = ['docker', 'logs', '--timestamps'];
    return { whole: [...words, log.container.id], last: [...words, '--tail', String(LAST_LINES), log.container.id] };
  }
  const words = [...JOURNAL_WORDS, ...entriesOf(log)];
  return { whole: words, last: [...words, `--lines=${LAST_LINES}`] };
}

interface JoinedEnds {
  readonly beginning: string;
  readonly ending: string;
  readonly between: number | undefined;
}

/** Whole lines alone. Each has its time or its cursor, so that no two are the same, and the last one of the beginning tells where the end goes on. */
export function joinEnds({ beginning, ending, lines }: PrintedEnds, isLine: (line: string) => boolean): JoinedEnds {
  const [head, tail] = [beginning, ending].map((text) => text.split('\n').slice(0, -1));
  const [first = [], all = []] = [head, tail];
  const last = all[0] !== undefined && !isLine(all[0]) ? all.slice(1) : all;
  const met = first.length === 0 ? -1 : last.lastIndexOf(first.at(-1) ?? '');
  const rest = last.slice(met + 1);
  const counted = lines === undefined ? undefined : Math.max(0, lines - first.length - rest.length);
  const between = met >= 0 ? 0 : counted;
  return { beginning: textOf(first), ending: textOf(rest), between };
}

function textOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

function isDockerLine(line: string): boolean {
  return takeDockerLines(`${line}\n`, FROM_BEGINNING).lines > 0;
}

function isEntry(line: string): boolean {
  return takeJournalEntries(`${line}\n`, '').entries > 0;
}

type Whose = Pick<LogEnds, 'beginning' | 'ending' | 'writtenAt' | 'readOn'>;

function ofDocker({ container: { id } }: Extract<KeptLog, { kind: 'docker' }>, joined: JoinedEnds): Whose {
  const first = takeDockerLines(joined.beginning, FROM_BEGINNING);
  const last = takeDockerLines(joined.ending, first.cursor);
  const latest = [...last.cursor.taken.keys()].reduce((late, stamp) => (stamp > late ? stamp : late), '');
  return {
    ...{ beginning: first.bytes, ending: last.bytes, readOn: (machine) => dockerReader(machine, id, last.cursor)() },
    writtenAt: latest === '' ? 0 : Date.parse(`${latest.slice(0, 23)}Z`),
  };
}

function ofJournal(log: Extract<KeptLog, { kind: 'journal' }>, joined: JoinedEnds): Whose {
  const first = takeJournalEntries(joined.beginning, '');
  const last = takeJournalEntries(joined.ending, first.cursor);
  const [, micros] = /"__REALTIME_TIMESTAMP"\s*:\s*"(\d{16})"[^\n]*\n$/.exec(joined.ending || joined.beginning) ?? [];
  return {
    ...{ beginning: first.bytes, ending: last.bytes, readOn: (machine) => journalReader(machine, log, last.cursor)() },
    writtenAt: Math.floor(Number(micros ?? 0) / 1000),
  };
}

/** A program's own words, where it has any. */
function whyNothing(printed: PrintedEnds | undefined, waitSeconds: number): string {
  if (printed === undefined) return `it was not shown in ${waitSeconds} s`;
  const said = `${printed.beginning}\n${printed.ending}`.split('\n').find((line) => line.trim() !== '');
  if (said !== undefined) return said.trim().slice(0, 200);
  return printed.lines === undefined ? `it was not shown in ${waitSeconds} s` : 'it holds no line';
}
