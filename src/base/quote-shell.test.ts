/** A real shell gives back what was quoted, byte for byte. */
import { execFileSync } from 'node:child_process';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import { quoteShell } from './quote-shell.ts';

const HOSTILE = [
  ...["it's", '"', '$(touch /tmp/no)', '`touch /tmp/no`', '-n', '--', '-', '', ' ', '\n', '\n\n', 'a\nb', '\\', "\\'", "'\\''"],
  ...[
    '~',
    '*',
    '?',
    '[a]',
    '{a,b}',
    '!!',
    '#',
    'a #b',
    '&',
    ';',
    '|',
    '>x',
    '$HOME',
    '${x',
    '\t',
    '\r',
    'é',
    '\u{1F600}',
    '\x7f',
    '\x01',
    '%s',
    '=',
    'A=b',
    '=b',
    '--a=b',
  ],
];
const word = fc.oneof(
  fc.constantFrom(...HOSTILE),
  fc.string({ unit: 'binary' }).filter((text) => !text.includes('\0')),
  fc
    .array(fc.constantFrom("'", '"', '\\', '$', '`', '\n', ' ', '(', ')', '-', 'a'), { maxLength: 40 })
    .map((parts) => parts.join('')),
);

describe.each(['sh', 'bash'])('%s', (shell) => {
  test('echoes each word as it was', () => {
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 30 }), (words) => {
        // Each word ends with a byte that no word holds.
        const script = `for word in ${words.map(quoteShell).join(' ')}; do printf '%s\\0' "$word"; done`;
        const said = execFileSync(shell, ['-s'], { input: script }).toString('utf8').split('\0').slice(0, -1);
        expect(said).toEqual(words.map((text) => Buffer.from(text).toString('utf8'))); // a lone surrogate has no bytes of its own
      }),
      { numRuns: runs(40), examples: [[HOSTILE]] },
    );
  });
});

test('plain words stay readable, and a NUL is refused', () => {
  expect(quoteShell('/models/Kimi-K2.5')).toBe('/models/Kimi-K2.5');
  expect(quoteShell('--tp=8')).toBe('--tp=8');
  expect(quoteShell('=tp')).toBe(`'=tp'`); // zsh expands =word
  expect(quoteShell('A=b')).toBe(`'A=b'`);
  expect(() => quoteShell('a\0b')).toThrow('NUL');
});
