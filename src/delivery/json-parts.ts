/**
 * Rows as JSON lines into part files of bounded size: `PREFIX-00000.jsonl`, `PREFIX-00001.jsonl`, …
 *
 * Promises: no part is larger than `partBytes` unless one line alone is; a part is never empty; every line ends in a
 * newline; each part is on disk before `close` returns, with its sha256.
 * On failure: rejects with the system's error; the caller throws the whole folder away.
 */
import { renderJsonLine } from './json-line.ts';
import { type OpenPart, openPart, type PartFile, type PartWriter, type PartWriterOptions, partName } from './part-file.ts';

/** Rows are gathered up to this before one write: a row is a few kilobytes, a system call for each would be most of the work. */
const WRITE_BYTES = 1 << 20;

interface Part {
  readonly file: OpenPart;
  rows: number;
  bytes: number;
}

export function openJsonParts(options: PartWriterOptions): PartWriter {
  const finished: PartFile[] = [];
  let part: Part | undefined;
  let held: Buffer[] = [];
  let heldBytes = 0;

  async function flush(current: Part): Promise<void> {
    if (heldBytes === 0) return;
    const bytes = Buffer.concat(held, heldBytes);
    held = [];
    heldBytes = 0;
    await current.file.write(bytes);
  }

  async function finishPart(): Promise<void> {
    const current = part;
    if (current === undefined) return;
    part = undefined;
    try {
      await flush(current);
    } finally {
      finished.push(await current.file.end(current.rows));
    }
  }

  return {
    async append(row) {
      const bytes = Buffer.from(`${renderJsonLine(row)}\n`);
      if (part !== undefined && part.bytes + bytes.length > options.partBytes) await finishPart();
      part ??= { file: await openPart(options.folder, partName(options.prefix, finished.length, 'jsonl')), rows: 0, bytes: 0 };
      part.rows += 1;
      part.bytes += bytes.length;
      held.push(bytes);
      heldBytes += bytes.length;
      if (heldBytes >= WRITE_BYTES) await flush(part);
    },
    async close() {
      await finishPart();
      return finished;
    },
  };
}
