import fc from 'fast-check';
import { expect, test } from 'vitest';
import { printable } from './printable.ts';

const ESCAPE = '\u001b';

test.each([
  ['plain text, é😀\n\tand a tab', 'plain text, é😀\n\tand a tab'],
  [`${ESCAPE}[31mred${ESCAPE}[0m`, `${ESCAPE}[31mred${ESCAPE}[0m`],
  [`${ESCAPE}[2J${ESCAPE}]0;title\u0007`, '\\u001b[2J\\u001b]0;title\\u0007'],
  ['a\rb\u202egnp.exe\u2028c\u0000', 'a\\u000db\\u202egnp.exe\\u2028c\\u0000'],
])('%j is printed as %j', (text, printed) => {
  expect(printable(text)).toBe(printed);
});

test('whatever is said, no escape gets through but a colour', () => {
  const text = fc.string({ unit: fc.constantFrom(ESCAPE, '[', '3', ';', 'm', 'J', ']', '\u009b', '\r', 'x') });
  fc.assert(
    fc.property(text, (said) => {
      const rest = printable(said).replaceAll(new RegExp(`${ESCAPE}\\[[\\d;]*m`, 'g'), '');
      expect(rest).not.toMatch(/[\p{Cc}]/u);
    }),
  );
});
