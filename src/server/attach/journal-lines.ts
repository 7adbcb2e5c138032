/**
 * What `journalctl --output=json` prints → the lines that a server wrote, every one once. Pure. Each line of it is an object with the
 * entry's cursor; MESSAGE is a text, a list of bytes where it is none, or null where it is too long to be shown.
 */

export interface TakenEntries {
  readonly bytes: Uint8Array;
  /** For `--after-cursor`; '' = from the beginning. */
  readonly cursor: string;
  readonly entries: number;
}

/** The last line, where it has no end yet, is taken when it has one. */
export function takeJournalEntries(printed: string, cursor: string): TakenEntries {
  const taken: Uint8Array[] = [];
  let latest = cursor;
  for (const line of printed.split('\n').slice(0, -1)) {
    const entry = parseEntry(line);
    if (entry === undefined) continue;
    latest = entry.cursor;
    taken.push(entry.message, NEWLINE);
  }
  return { bytes: Buffer.concat(taken), cursor: latest, entries: taken.length / 2 };
}

const NEWLINE = Buffer.from('\n');

function parseEntry(line: string): { readonly cursor: string; readonly message: Uint8Array } | undefined {
  try {
    const { __CURSOR: cursor, MESSAGE: message } = JSON.parse(line) as {
      readonly __CURSOR?: unknown;
      readonly MESSAGE?: unknown;
    };
    // It becomes an argument again: nothing but what cursors are made of.
    if (typeof cursor !== 'string' || !/^[a-z0-9]+=[a-z0-9=;]+$/.test(cursor)) return undefined;
    return { cursor, message: bytesOf(message) };
  } catch {
    return undefined;
  }
}

function bytesOf(message: unknown): Uint8Array {
  if (typeof message === 'string') return Buffer.from(message);
  const isBytes = Array.isArray(message) && message.every((byte) => Number.isInteger(byte) && byte >= 0 && byte < 256);
  return isBytes ? Buffer.from(message as number[]) : Buffer.alloc(0);
}
