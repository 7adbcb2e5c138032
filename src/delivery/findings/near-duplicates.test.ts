import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../test/support/property-runs.ts';
import { openNearDuplicates, STRETCH_WORDS, signatureOf } from './near-duplicates.ts';
import { hashStretches, hashWord, wordsOf } from './words.ts';

/** The share of five-word stretches that two texts have in common, counted exactly. */
function jaccard(one: string, other: string): number {
  const [a, b] = [one, other].map((text) => {
    const words = wordsOf(text);
    const size = Math.min(STRETCH_WORDS, words.length);
    return new Set(Array.from({ length: words.length - size + 1 }, (_, at) => words.slice(at, at + size).join(' ')));
  }) as [Set<string>, Set<string>];
  const common = [...a].filter((stretch) => b.has(stretch)).length;
  return common / (a.size + b.size - common);
}

const isFound = (one: string, other: string) => {
  const texts = openNearDuplicates();
  return !texts.isRepeated(one) && texts.isRepeated(other);
};

/** A text, and the same with some words changed; the seed is fixed, because the method is right in all but a few cases. */
const words = fc.array(fc.integer({ min: 0, max: 5000 }), { minLength: 60, maxLength: 400 });
const changed = fc.tuple(words, fc.array(fc.nat(), { maxLength: 60 })).map(([text, places]) => {
  const copy = [...text];
  for (const place of places) copy[place % copy.length] = 9999;
  return [text, copy].map((list) => list.map((number) => `w${number}`).join(' ')) as [string, string];
});
const options = { seed: 20, numRuns: runs(400) };

describe('near duplicates', () => {
  it('are found where nine stretches of ten are the same, and not where half of them are', () => {
    const seen = { near: 0, far: 0 };
    fc.assert(
      fc.property(changed, ([one, other]) => {
        const share = jaccard(one, other);
        if (share >= 0.9) seen.near += 1;
        if (share <= 0.5) seen.far += 1;
        if (share >= 0.95) return isFound(one, other);
        return share > 0.5 || !isFound(one, other);
      }),
      options,
    );
    expect(Math.min(seen.near, seen.far)).toBeGreaterThan(20); // both sides were there to be judged
  });

  it('are judged by a share that is near the true one', () => {
    let error = 0;
    let pairs = 0;
    fc.assert(
      fc.property(changed, ([one, other]) => {
        const [a, b] = [signatureOf(one) ?? [], signatureOf(other) ?? []];
        const equal = [...a].filter((byte, at) => byte === b[at]).length / 64;
        error += Math.abs(equal - jaccard(one, other));
        pairs += 1;
      }),
      options,
    );
    expect(error / pairs).toBeLessThan(0.06); // of 64 samples one standard deviation is at most 0.0625
  });

  it('do not care about case, punctuation and spaces, in scripts with and without spaces', () => {
    expect(isFound('Where is the red house?', 'where  is the RED house')).toBe(true);
    const chinese = '请用三句话解释为什么天空是蓝色的,并且举一个例子说明光的散射现象是什么';
    expect(isFound(chinese, `${chinese}。`)).toBe(true);
    expect(isFound(chinese, '请写一首关于秋天的诗,要求押韵,并且提到落叶和远方的朋友以及归来的大雁')).toBe(false);
  });

  it('are compared with every text that was kept, also when there are thousands', () => {
    const texts = openNearDuplicates();
    const text = (at: number) => Array.from({ length: 30 }, (_, word) => `${hashWord(`${at}:${word}`)}`).join(' ');
    const repeated = Array.from({ length: 3000 }, (_, at) => texts.isRepeated(text(at))).filter(Boolean).length;
    expect(repeated).toBe(0);
    for (const at of [0, 1, 1500, 2999]) expect(texts.isRepeated(`${text(at)} and`)).toBe(true);
  });

  it('are told apart by the rest where thousands share a preface', () => {
    const texts = openNearDuplicates();
    const preface = Array.from({ length: 40 }, (_, word) => `preface${word}`).join(' ');
    const text = (at: number) => `${preface} ${Array.from({ length: 60 }, (_, word) => hashWord(`${at}:${word}`)).join(' ')}`;
    for (let at = 0; at < 1000; at += 1) expect(texts.isRepeated(text(at))).toBe(false);
    expect(texts.isRepeated(text(999))).toBe(true);
  });

  it('are none without words', () => {
    const texts = openNearDuplicates();
    for (const text of ['', '…', '…']) expect(texts.isRepeated(text)).toBe(false);
    expect(hashStretches([], 5)).toEqual([]);
  });
});
