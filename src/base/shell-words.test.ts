/** Held against a real shell: what it gives to a program is what is read here, or it is said that nothing is known. */
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { quoteShell } from './quote-shell.ts';
import { splitShellWords } from './shell-words.ts';

const texts = (line: string) => splitShellWords(line)?.map(({ text, isPlain }) => (isPlain ? text : `~${text}`));

test.each<[string, readonly string[] | undefined]>([
  ['docker run --gpus all IMG python3 -m x', ['docker', 'run', '--gpus', 'all', 'IMG', 'python3', '-m', 'x']],
  [`a 'b c' "d e" f\\ g`, ['a', 'b c', 'd e', 'f g']],
  ['a; b', undefined],
  ['a && b', undefined],
  ['a > log', undefined],
  ['a | b', undefined],
  ['a # b', undefined],
  ["a 'b", undefined],
  ['a "b', undefined],
  ['a $(b', undefined],
  ["a $'b'", undefined],
  ['', []],
])('%s', (line, expected) => {
  expect(texts(line)).toEqual(expected);
});

test('what a shell would expand is one word, as it is written', () => {
  expect(texts(`-v "$HOME/m":/m $(id -u; echo ")") \${X:-a} \`date\` ~/x *.py {a,b} a=$B`)).toEqual([
    '-v',
    '~"$HOME/m":/m',
    '~$(id -u; echo ")")',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell's, not ours
    '~${X:-a}',
    '~`date`',
    '~~/x',
    '~*.py',
    '~{a,b}',
    '~a=$B',
  ]);
});

test('words that were quoted come back', () => {
  fc.assert(
    fc.property(fc.array(fc.string().filter((word) => !word.includes('\0'))), (words) => {
      const line = words.map(quoteShell).join(' ');
      // A line break in a word is inside quotes.
      expect(splitShellWords(line)).toEqual(words.map((text) => expect.objectContaining({ text, isPlain: true })));
    }),
  );
});

test('a real shell gives a program the same words', () => {
  const piece = fc.constantFrom(
    'a',
    'B',
    '-',
    '=',
    ' ',
    '  ',
    "'",
    '"',
    '\\',
    '$',
    '{',
    '}',
    '(',
    ')',
    '`',
    '*',
    '~',
    '#',
    ';',
    '&',
    '|',
    '<',
    '/',
    ',',
  );
  const line = fc.array(piece, { maxLength: 14 }).map((pieces) => pieces.join(''));
  fc.assert(
    fc.property(line, (text) => {
      const words = splitShellWords(text);
      if (words === undefined || !words.every(({ isPlain }) => isPlain)) return;
      const { status, stdout } = spawnSync('sh', ['-c', `printf '<%s>' x ${text}`], { encoding: 'utf8' });
      expect([status, stdout]).toEqual([0, ['x', ...words.map((word) => word.text)].map((word) => `<${word}>`).join('')]);
    }),
    { numRuns: 300 },
  );
});
