/** Counts the reasons in `rejected/NAME.ndjson`. A line that cannot be read counts as `unreadable`; it never throws for content. */
import { splitLines } from './split-lines.ts';

export async function readRejectedReasons(chunks: AsyncIterable<Uint8Array>): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for await (const lines of splitLines(chunks)) {
    for (const line of lines) {
      const reason = line.kind === 'text' ? reasonOf(line.bytes) : 'unreadable';
      counts[reason] = (counts[reason] ?? 0) + 1;
    }
  }
  return counts;
}

function reasonOf(line: Uint8Array): string {
  try {
    const row = JSON.parse(new TextDecoder().decode(line)) as { reason?: unknown };
    return typeof row.reason === 'string' ? row.reason : 'unreadable';
  } catch {
    return 'unreadable';
  }
}
