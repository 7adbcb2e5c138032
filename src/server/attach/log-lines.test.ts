/** Lines that docker and journalctl print: every one once, however the reading was cut. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { FROM_BEGINNING, readJsonEntry, takeDockerLines, withoutOverlap } from './docker-lines.ts';
import { takeJournalEntries } from './journal-lines.ts';

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString();

/** As `docker logs --timestamps --since` prints it, cut after some characters. */
function print(entries: readonly { readonly stamp: string; readonly line: string }[], since: string, most: number): string {
  const shown = entries.filter(({ stamp }) => stamp >= since).map(({ stamp, line }) => `${stamp} ${line}\n`);
  return shown.join('').slice(0, most);
}

const stampAt = (ms: number, nanos: number) =>
  `${new Date(1_790_000_000_000 + ms).toISOString().slice(0, 23)}${String(nanos).padStart(6, '0')}Z`;

test('every line once, of equal moments too, while the log grows and pieces are cut', () => {
  const entry = fc.record({ ms: fc.integer({ min: 0, max: 3_000 }), nanos: fc.integer({ min: 0, max: 2 }), line: fc.string() });
  fc.assert(
    fc.property(
      fc.array(entry, { maxLength: 60 }),
      fc.array(fc.record({ grows: fc.integer({ min: 0, max: 20 }), most: fc.integer({ min: 120, max: 1_000 }) })),
      (made, reads) => {
        const entries = made
          .map(({ ms, nanos, line }, n) => ({ stamp: stampAt(ms, nanos), line: `${n} ${line.replaceAll('\n', ' ')}` }))
          .sort((a, b) => a.stamp.localeCompare(b.stamp));
        let cursor = FROM_BEGINNING;
        let there = 0;
        let read = '';
        const readOn = (most: number) => {
          const printed = print(entries.slice(0, there), cursor.since, most);
          const taken = takeDockerLines(printed, cursor);
          const isCut = printed.length >= most;
          cursor = isCut && taken.lines === 0 ? withoutOverlap(taken.cursor) : taken.cursor;
          read += text(taken.bytes);
        };
        for (const { grows, most } of reads) {
          there = Math.min(entries.length, there + grows);
          readOn(most);
        }
        there = entries.length;
        for (let n = 0; n < 3; n++) readOn(Number.POSITIVE_INFINITY);
        expect(read).toBe(entries.map(({ line }) => `${line}\n`).join(''));
      },
    ),
  );
});

test('a line that comes to the log after a later one of the other stream is taken', () => {
  const [early, late] = [stampAt(10, 0), stampAt(20, 0)];
  const first = takeDockerLines(`${late} out\n`, FROM_BEGINNING);
  const second = takeDockerLines(`${early} err\n${late} out\n`, first.cursor);
  expect([text(first.bytes), text(second.bytes)]).toEqual(['out\n', 'err\n']);
});

test('a line of several entries is one line, and words of docker itself are none', () => {
  const long = 'é'.repeat(20_000);
  const bytes = Buffer.from(`${long} end`);
  const parts = [0, 1, 2].map((n) => bytes.subarray(n * 16_384, (n + 1) * 16_384));
  const line = Buffer.concat(parts.flatMap((part, n) => [Buffer.from(`${stampAt(n, 0)} `), part])).toString('latin1');
  const printed = `${Buffer.from(line, 'latin1').toString()}\nError response from daemon: x\n`;
  expect(text(takeDockerLines(printed, FROM_BEGINNING).bytes).endsWith(' end\n')).toBe(true);
  const { bytes: taken, lines } = takeDockerLines(`${stampAt(0, 0)} ${'x'.repeat(16_384)}${stampAt(0, 1)} y\n`, FROM_BEGINNING);
  expect([taken.length, lines]).toEqual([16_386, 1]);
});

test('entries of a json-file log are what was written', () => {
  expect(readJsonEntry('{"log":"a\\u001b[0m\\n","stream":"stderr","time":"t"}')).toBe('a\u001b[0m\n');
  expect(['', 'x', '{"log":1}', 'null'].map(readJsonEntry)).toEqual(['', '', '', '']);
});

test('entries of the journal: text, bytes, and what is too long; a cursor is nothing but a cursor', () => {
  const entry = (cursor: string, message: unknown) => `${JSON.stringify({ __CURSOR: cursor, MESSAGE: message })}\n`;
  const printed = `${entry('s=a;i=1', 'one')}${entry('s=a;i=2', [0xc3, 0xa9])}${entry('s=a;i=3', null)}{"__CURSOR":"s=a;i=4`;
  expect(takeJournalEntries(printed, '')).toMatchObject({ cursor: 's=a;i=3', entries: 3 });
  expect(text(takeJournalEntries(printed, '').bytes)).toBe('one\né\n\n');
  expect(takeJournalEntries(entry('--output=/etc/x', 'evil'), 's=a;i=3')).toMatchObject({ cursor: 's=a;i=3', entries: 0 });
  fc.assert(fc.property(fc.string(), (any) => void takeJournalEntries(`${any}\n`, '')));
});
