/** Texts of pieces against their ids, whatever bytes a cut goes through; and how reasoning is split. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { joinTexts, learnSplit, sameMoreText, sameText, splitThinking } from './answer-text.ts';

const decode = (bytes: Uint8Array) => new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);

/** A text cut into pieces of bytes anywhere, each piece as its engine would show it. */
const cutText = fc
  .tuple(fc.string({ unit: fc.constantFrom('a', ' ', 'é', '漢', '🙂', '\n'), minLength: 1, maxLength: 30 }), fc.nat(), fc.nat())
  .map(([text, a, b]) => {
    const bytes = new TextEncoder().encode(text);
    const [from, to] = [a % (bytes.length + 1), b % (bytes.length + 1)].sort((x, y) => x - y) as [number, number];
    return { text, pieces: [bytes.slice(0, from), bytes.slice(from, to), bytes.slice(to)] };
  });

test('pieces joined are the whole text, whether an engine shows half a character or leaves it out', () => {
  fc.assert(
    fc.property(cutText, fc.boolean(), ({ text, pieces }, leavesOut) => {
      const shown = pieces.map(decode).map((piece) => (leavesOut ? piece.replaceAll('\uFFFD', '') : piece));
      expect(joinTexts(shown, text).trim()).toBe(text.trim());
      for (const [at, piece] of pieces.entries())
        expect((at === 0 ? sameText : sameMoreText)(decode(piece), shown[at] ?? '')).toBe(true);
    }),
  );
});

test('bytes that are no text join to what they decode to as a whole', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 9 }), { minLength: 1, maxLength: 5 }), (pieces) => {
      const whole = decode(Buffer.concat(pieces));
      const bare = (text: string) => text.replace(/\uFFFD+$/u, '').trim();
      expect(bare(joinTexts(pieces.map(decode), whole))).toBe(bare(whole));
    }),
  );
});

test('a decoded text that says something else is not taken for the pieces’ own', () => {
  expect(joinTexts(['ab', 'cd'], 'abXYcd')).toBe('abcd');
  expect(joinTexts(['ab', 'cd'], 'acd')).toBe('abcd');
  expect(joinTexts(['ab', 'cd'], undefined)).toBe('abcd');
  expect(joinTexts(['ab\uFFFD', '\uFFFDcd'], 'ab漢cd')).toBe('ab漢cd');
  expect(joinTexts([' ab', ' cd'], 'ab cd')).toBe(' ab cd'); // a tokenizer that leaves the first blank out
});

test('a piece may begin with the rest of a character, shown whole, broken or not at all', () => {
  for (const text of ['漢ab', '\uFFFDab', 'ab']) expect(sameMoreText('\uFFFD\uFFFDab', text)).toBe(true);
  expect(sameMoreText('\uFFFDab', 'xyab')).toBe(false);
  expect(sameMoreText('ab', 'xab')).toBe(false);
  expect(sameMoreText('ab', 'ab')).toBe(true);
});

test('reasoning is what stands before the first closing marker', () => {
  expect(splitThinking('<think>\na</think>\n\nb')).toEqual({ reasoning: '\na', text: '\n\nb' });
  expect(splitThinking('a</think>b</think>c')).toEqual({ reasoning: 'a', text: 'b</think>c' });
  expect(splitThinking('still at it')).toEqual({ reasoning: 'still at it', text: '' });
});

test('the rule is used only where the engine’s own split of the first piece bears it out, blanks included', () => {
  const whole = '<think>\nhm, yes\n</think>\n\nHello ';
  expect(learnSplit('<think>\nhm', { reasoning: '\nhm', text: '' })?.(whole)).toEqual({
    reasoning: '\nhm, yes\n',
    text: '\n\nHello ',
  });
  expect(learnSplit('<think>\nhm', { reasoning: 'hm', text: '' })?.(whole)).toEqual({ reasoning: 'hm, yes', text: 'Hello' });
  expect(learnSplit('hm</think>\n\nHe', { reasoning: 'hm', text: 'He' })?.(whole).text).toBe('Hello');
  expect(learnSplit('[THINK]hm', { reasoning: 'hm', text: '' })).toBeUndefined();
  expect(learnSplit('hm[/THINK]He', { reasoning: 'hm', text: 'He' })).toBeUndefined();
});
