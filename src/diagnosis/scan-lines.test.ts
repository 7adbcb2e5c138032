import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AnchorSet } from './anchor-set.ts';
import { type FoundLine, LineScan } from './scan-lines.ts';

interface Told {
  readonly line: number;
  readonly text: string;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

function scan(chunks: readonly Uint8Array[], around = 2): { told: Told[]; lines: number; tail: string[] } {
  const told: Told[] = [];
  const lines = new LineScan(new AnchorSet(['needle', 'other thing']), (found) => {
    told.push(tell(found, around));
  });
  for (const chunk of chunks) lines.feed(chunk);
  const end = lines.rest();
  for (const found of end.found) told.push(tell(found, around));
  return { told, lines: end.lines, tail: end.tail.map(({ text }) => text) };
}

function tell(found: FoundLine, around: number): Told {
  return { line: found.line, text: found.text(), before: found.before(around), after: found.after(around) };
}

function scanText(text: string) {
  return scan([Buffer.from(text)]);
}

describe('LineScan', () => {
  it('tells lines with an anchor, by their number, with what stands around them', () => {
    expect(scanText('one\ntwo needle\nthree\nfour\n').told).toEqual([
      { line: 2, text: 'two needle', before: ['one'], after: ['three', 'four'] },
    ]);
  });

  it('numbers by line feeds and reads each part of a progress bar on its own', () => {
    expect(scanText('bar 1\rbar 2 needle\rbar 3\r\nlast needle').told.map(({ line, text }) => [line, text])).toEqual([
      [1, 'bar 2 needle'],
      [2, 'last needle'],
    ]);
  });

  it('finds an anchor in capitals, in colours, and broken by a terminal', () => {
    expect(scanText('\u001b[01;31mNEE\u001b[0mDLE\n').told).toMatchObject([{ line: 1, text: 'NEEDLE' }]);
    expect(scanText('some nee\ndle here\n').told).toMatchObject([{ line: 2, text: 'dle here', before: ['some nee'] }]);
    expect(scanText('an other\nthing\n').told).toMatchObject([{ line: 2 }]);
  });

  it('tells the same, however the bytes are cut', () => {
    const piece = fc.constantFrom('needle', 'other thing', 'x', '\n', '\r', '\r\n', 'é', '\u001b[1m', ' ', 'noise '.repeat(20));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), fc.array(fc.nat(400), { maxLength: 8 }), (pieces, cuts) => {
        const bytes = Buffer.from(pieces.join(''));
        const ends = [...new Set([...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b);
        const chunks = ends.map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end));
        expect(scan(chunks).told).toEqual(scan([bytes]).told);
      }),
    );
  });

  it('keeps little of a long log, and still the lines around a find and the tail', () => {
    const noise = Buffer.from('all is well, nothing to see here at all\n'.repeat(1000));
    const chunks = [noise, noise, Buffer.from('needle\n'), noise];
    const { told, lines, tail } = scan(chunks);
    expect(told).toMatchObject([{ line: 2001, before: Array(2).fill('all is well, nothing to see here at all') }]);
    expect(lines).toBe(3001);
    expect(tail.length).toBeLessThan(600);
    expect(tail.at(-1)).toBe('all is well, nothing to see here at all');
  });

  it('survives a line of many megabytes', () => {
    const long = Buffer.alloc(3 * 2 ** 20, 'y');
    expect(scan([long, Buffer.from('\nneedle\n')]).told).toMatchObject([{ line: 2, text: 'needle' }]);
    expect(scan([long, Buffer.from('needle\n')]).told).toMatchObject([{ line: 1 }]);
  });
});
