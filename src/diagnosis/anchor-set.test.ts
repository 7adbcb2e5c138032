import fc from 'fast-check';
import { expect, it } from 'vitest';
import { AnchorSet } from './anchor-set.ts';
import { bareText } from './sign.ts';

/** As the scan walks: without white space. */
function foundIn(set: AnchorSet, text: string): number[] {
  const found = new Set<number>();
  let state = 0;
  for (const byte of Buffer.from(text.replace(/\s/g, ''))) {
    state = set.step(state, byte);
    if (state >= set.firstFound) for (const id of set.found(state)) found.add(id);
  }
  return [...found].sort((a, b) => a - b);
}

it('finds what searching for each text would find, whatever overlaps', () => {
  const word = fc
    .string({ unit: fc.constantFrom('a', 'b', 'c', 'A', ' '), minLength: 1, maxLength: 6 })
    .filter((text) => bareText(text) !== '');
  fc.assert(
    fc.property(
      fc.uniqueArray(word, { minLength: 1, maxLength: 8, selector: bareText }),
      fc.string({ unit: fc.constantFrom('a', 'b', 'c', 'B', ' ') }),
      (words, text) => {
        const expected = words.flatMap((one, at) => (bareText(text).includes(bareText(one)) ? [at] : []));
        expect(foundIn(new AnchorSet(words), text)).toEqual(expected);
      },
    ),
  );
});
