/** What stands in `rejected/NAME.ndjson`, by reason. A line that cannot be read counts as `unreadable`; it never throws for content. */
import { splitLines } from './split-lines.ts';

/** The refused rows of one reason, and the first of them. */
export interface RefusedRows {
  readonly reason: string;
  readonly count: number;
  /** Row in its file, counted from 1; 0: not known. */
  readonly line: number;
  /** What exactly was wrong with it; '' where that is not known. */
  readonly detail: string;
}

export async function readRefusedRows(chunks: AsyncIterable<Uint8Array>): Promise<RefusedRows[]> {
  const rows = new Map<string, RefusedRows>();
  for await (const lines of splitLines(chunks)) {
    for (const line of lines) {
      const row = line.kind === 'text' ? refusedRow(line.bytes) : UNREADABLE;
      const first = rows.get(row.reason) ?? row;
      rows.set(row.reason, { ...first, count: (rows.get(row.reason)?.count ?? 0) + 1 });
    }
  }
  return [...rows.values()];
}

/** Reason → how many rows. */
export async function readRejectedReasons(chunks: AsyncIterable<Uint8Array>): Promise<Record<string, number>> {
  return Object.fromEntries((await readRefusedRows(chunks)).map(({ reason, count }) => [reason, count]));
}

const UNREADABLE: RefusedRows = { reason: 'unreadable', count: 0, line: 0, detail: '' };

function refusedRow(bytes: Uint8Array): RefusedRows {
  try {
    const { reason, line, detail } = JSON.parse(new TextDecoder().decode(bytes)) as Readonly<Record<string, unknown>>;
    if (typeof reason !== 'string') return UNREADABLE;
    return { reason, count: 0, line: typeof line === 'number' ? line : 0, detail: typeof detail === 'string' ? detail : '' };
  } catch {
    return UNREADABLE;
  }
}
