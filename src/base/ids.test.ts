/** Names derived from hashes: golden values, because a record's id and seed must be the same in every version. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { base32, contentId, sha256Hex, turnSeed } from './ids.ts';

test('base32 is that of RFC 4648, lower case, without padding', () => {
  const encode = (text: string, characters: number) => base32(new TextEncoder().encode(text), characters);
  expect(encode('foobar', 9)).toBe('mzxw6ytbo');
  expect(encode('fooba', 8)).toBe('mzxw6ytb');
  expect(encode('foob', 6)).toBe('mzxw6y');
  expect(base32(new Uint8Array(20).fill(255), 32)).toBe('7'.repeat(32));
});

test('sha256 and the content id of a known text', () => {
  expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  expect(contentId('abc')).toBe('xj4bnp4pahh6uqkbidpf3lrceo');
});

test('each continuation of an answer has a seed of its own, and the first request keeps the one it always had', () => {
  expect(turnSeed(7, 'p', 0, 0, 0)).toBe(1069475910);
  expect(new Set([0, 1, 2, 3].map((continuation) => turnSeed(7, 'p', 0, 0, continuation))).size).toBe(4);
});

test('a seed depends on run, prompt and turn, and fits a signed 32-bit number', () => {
  expect([turnSeed(7, 'p', 0), turnSeed(7, 'p', 1), turnSeed(8, 'p', 0)]).toEqual([1069475910, 899761732, 712388164]);
  fc.assert(
    fc.property(fc.nat(), fc.string(), fc.nat(9), (run, id, turn) => {
      const seed = turnSeed(run, id, turn);
      expect(seed).toBe(turnSeed(run, id, turn));
      expect(seed >= 0 && seed < 2 ** 31 && Number.isInteger(seed)).toBe(true);
    }),
  );
});
