import fc from 'fast-check';
import { expect, it } from 'vitest';
import { quoteText, quoteValue } from './quote.ts';

it('names values of every kind', () => {
  expect([null, undefined, 'a"b', 1.5, true, [1], { a: 1 }].map(quoteValue)).toEqual([
    'nothing',
    'nothing',
    '"a\\"b"',
    '1.5',
    'true',
    'a list',
    'a map',
  ]);
});

it('lets nothing through that a terminal acts on, and stays short', () => {
  expect(quoteText('\u001b[2Jred\u202e\u2028\u009b')).toBe('"\\u001b[2Jred\\u202e\\u2028\\u009b"');
  expect(quoteText('x'.repeat(1000))).toBe(`"${'x'.repeat(60)}"…`);
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(quoteText(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
    }),
  );
});
