/** Lines in memory that is used again: their bytes are right, lie still until the reset, and have no limit. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { LineBuffer } from './line-buffer.ts';

const id = fc.oneof(
  fc.nat(2 ** 31 - 1),
  fc.nat(200_000),
  fc.constantFrom(0, 9, 10, 99, 100, 999, 1000, 1001, 999_999, 2 ** 31 - 1),
);
const piece = fc.oneof(fc.string({ unit: 'binary' }), fc.array(id, { maxLength: 30 }));
const lines = fc.array(fc.array(piece, { maxLength: 4 }), { maxLength: 5 });

/** What the pieces are as text. */
const textOf = (pieces: readonly (string | readonly number[])[]) =>
  pieces.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join('');

function write(buffer: LineBuffer, pieces: readonly (string | readonly number[])[]): Buffer {
  for (const one of pieces) {
    if (typeof one === 'string') buffer.text(one);
    else buffer.ids(one);
  }
  return buffer.end();
}

test('lines are the bytes of their pieces, and stay so while others are written, before and after a reset', () => {
  const buffer = new LineBuffer();
  fc.assert(
    fc.property(lines, (given) => {
      buffer.reset();
      const written = given.map((pieces) => write(buffer, pieces));
      expect(written.map(String)).toEqual(given.map((pieces) => String(Buffer.from(textOf(pieces)))));
    }),
  );
});

test('lines longer than a slab, and more lines than slabs are kept, are whole', () => {
  const buffer = new LineBuffer();
  const ids = Array.from({ length: 300_000 }, (_, at) => at);
  const long = ['é'.repeat(700_000), ids, 'x', ids, '漢'.repeat(2_000_000)];
  for (const _round of [1, 2]) {
    const short = Array.from({ length: 30 }, (_, nth) => [`${nth}`, ids.slice(0, 30_000 + nth)]);
    const given = [['a'], long, ['b'], ...short, long, ['c']];
    const written = given.map((pieces) => write(buffer, pieces));
    for (const [nth, pieces] of given.entries()) expect(written[nth]?.equals(Buffer.from(textOf(pieces)))).toBe(true);
    buffer.reset();
  }
});
