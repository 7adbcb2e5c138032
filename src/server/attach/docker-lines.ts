/**
 * What docker prints and keeps of a container's output → the bytes that its server wrote, every line once. Pure; the text comes from
 * another program and anybody's server.
 */

/** `2026-11-30T22:26:56.931000002Z `, always nine decimals. */
const STAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z /;
const STAMP_LENGTH = 31;
/** Longer lines are entries of this many bytes, each with a stamp of its own (moby, daemon/logger/copier.go: defaultBufSize). */
const ENTRY_BYTES = 16 * 1024;
/** Two streams are stamped by two writers: one may come to the log a little after a later one. */
const OVERLAP_MS = 1_000;

export interface DockerCursor {
  /** For `--since`; '' = from the beginning. */
  readonly since: string;
  /** How many lines of each moment from `since` on were taken. */
  readonly taken: ReadonlyMap<string, number>;
}

export const FROM_BEGINNING: DockerCursor = { since: '', taken: new Map() };

export interface TakenLines {
  readonly bytes: Uint8Array;
  readonly cursor: DockerCursor;
  readonly lines: number;
}

/** `printed`: of `docker logs --timestamps --since`. The last line, where it has no end yet, is taken when it has one. */
export function takeDockerLines(printed: string, { since, taken }: DockerCursor): TakenLines {
  const lines = printed
    .split('\n')
    .slice(0, -1)
    .filter((line) => STAMP.test(line));
  const met = new Map<string, number>();
  const fresh: Buffer[] = [];
  let last = '';
  for (const line of lines) {
    const stamp = line.slice(0, STAMP_LENGTH - 1);
    const nth = (met.get(stamp) ?? 0) + 1;
    met.set(stamp, nth);
    if (stamp > last) last = stamp;
    if (nth > (taken.get(stamp) ?? 0)) fresh.push(Buffer.from(textOf(line)), NEWLINE);
  }
  if (last === '') return { bytes: Buffer.alloc(0), cursor: { since, taken }, lines: 0 };
  const from = new Date(Date.parse(`${last.slice(0, 23)}Z`) - OVERLAP_MS).toISOString();
  const known = new Map(
    [...taken, ...met]
      .filter(([stamp]) => stamp >= from)
      .map(([stamp]) => [stamp, Math.max(taken.get(stamp) ?? 0, met.get(stamp) ?? 0)]),
  );
  return { bytes: Buffer.concat(fresh), cursor: { since: from, taken: known }, lines: fresh.length / 2 };
}

export function withoutOverlap({ since, taken }: DockerCursor): DockerCursor {
  const latest = [...taken.keys()].reduce((last, stamp) => (stamp > last ? stamp : last), since);
  return { since: latest, taken };
}

const NEWLINE = Buffer.from('\n');

/** Without its stamps. */
function textOf(line: string): string {
  const first = line.slice(STAMP_LENGTH);
  if (first.length <= ENTRY_BYTES / 4) return first; // a character has at most four bytes
  const bytes = Buffer.from(first);
  const entries: Buffer[] = [];
  for (let rest = bytes; ; ) {
    const next = rest.subarray(ENTRY_BYTES);
    if (!STAMP.test(next.subarray(0, STAMP_LENGTH).toString('latin1'))) return Buffer.concat([...entries, rest]).toString();
    entries.push(rest.subarray(0, ENTRY_BYTES));
    rest = next.subarray(STAMP_LENGTH);
  }
}

/** One entry of a json-file log, `{"log":"…\n","stream":"stderr","time":"…"}` → what was written; '' where it is none. */
export function readJsonEntry(line: string): string {
  try {
    const { log } = JSON.parse(line) as { readonly log?: unknown };
    return typeof log === 'string' ? log : '';
  } catch {
    return '';
  }
}
