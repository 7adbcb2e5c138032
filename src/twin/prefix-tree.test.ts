import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import type { Segment } from './load.ts';
import { PrefixTree } from './prefix-tree.ts';

const path = (...parts: [string, number][]): Segment[] => parts.map(([key, tokens]) => ({ key, tokens }));
const lengthOf = (segments: readonly Segment[]) => segments.reduce((sum, { tokens }) => sum + tokens, 0);
const newTree = (hostTokens = 0, evictWhole = true, pageTokens = 1) => new PrefixTree({ pageTokens, evictWhole, hostTokens });

/** Every token by its name: what the segments stand for. */
const tokensOf = (segments: readonly Segment[], limit: number) =>
  segments.flatMap(({ key, tokens }) => Array.from({ length: tokens }, (_, at) => `${key}${at}`)).slice(0, limit);

const paths = fc.array(
  fc.record({
    segments: fc.array(fc.record({ key: fc.constantFrom('a', 'b', 'c'), tokens: fc.integer({ min: 1, max: 9 }) }), {
      minLength: 1,
      maxLength: 4,
    }),
    cut: fc.integer({ min: 0, max: 30 }),
  }),
  { minLength: 1, maxLength: 25 },
);

/** A key has one length at one place, as the load promises. */
const lawful = (all: readonly { segments: readonly Segment[]; cut: number }[]) =>
  all.map(({ segments, cut }) => {
    const sized = segments.map(({ key }, depth) => ({ key: `${key}${depth}`, tokens: 3 + depth + (key === 'a' ? 4 : 0) }));
    return { segments: sized, limit: Math.min(cut, lengthOf(sized)) };
  });

describe('the prefix tree', () => {
  test('finds what a list of all token sequences finds, as long as nothing is evicted', () => {
    fc.assert(
      fc.property(paths, (drawn) => {
        const tree = newTree();
        const known = new Set<string>();
        for (const { segments, limit } of lawful(drawn)) {
          const tokens = tokensOf(segments, limit);
          let there = 0;
          while (there < limit && known.has(tokens.slice(0, there + 1).join())) there++;
          expect(tree.match(segments, limit, true).poolTokens).toBe(there);
          expect(tree.insert(segments, limit).doubled).toBe(there);
          for (let at = 1; at <= limit; at++) known.add(tokens.slice(0, at).join());
          expect(tree.heldTokens).toBe(known.size);
          expect(tree.evictableTokens).toBe(known.size);
        }
      }),
    );
  });

  test('keeps its books under locks, evictions and a host tier', () => {
    const moves = fc.array(
      fc.tuple(
        fc.constantFrom('insert', 'lock', 'unlock', 'evict', 'restore'),
        fc.integer({ min: 0, max: 24 }),
        fc.integer({ min: 1, max: 40 }),
      ),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(paths, moves, fc.constantFrom(0, 15, 400), fc.boolean(), (drawn, all, host, whole) => {
        const tree = newTree(host, whole && host === 0 ? whole : true);
        const those = lawful(drawn);
        const locked: ReturnType<typeof tree.match>['node'][] = [];
        for (const [move, which, amount] of all) {
          const { segments, limit } = those[which % those.length] ?? { segments: [], limit: 0 };
          const before = tree.heldTokens;
          if (move === 'insert') {
            const { doubled } = tree.insert(segments, limit);
            expect(tree.heldTokens - before).toBe(limit - doubled);
            expect(tree.match(segments, limit, false).poolTokens).toBe(limit);
          } else if (move === 'lock') {
            const { node } = tree.match(segments, limit, true);
            tree.lock(node);
            locked.push(node);
          } else if (move === 'unlock') {
            const node = locked.pop();
            if (node !== undefined) tree.unlock(node);
          } else if (move === 'restore') {
            const { hostNodes, hostTokens } = tree.match(segments, limit, true);
            tree.restore(hostNodes);
            expect(tree.heldTokens - before).toBe(hostTokens);
          } else {
            const evictable = tree.evictableTokens;
            const freed = tree.evict(amount);
            expect(freed).toBeGreaterThanOrEqual(Math.min(amount, evictable));
            expect(tree.heldTokens).toBe(before - freed);
          }
          expect(tree.hostTokens).toBeLessThanOrEqual(host);
          expect(tree.evictableTokens).toBeLessThanOrEqual(tree.heldTokens);
          for (const node of locked) expect(node.inPool || node.parent === undefined).toBe(true);
        }
        while (locked.length > 0) tree.unlock(locked.pop() ?? tree.root);
        expect(tree.evictableTokens).toBe(tree.heldTokens);
        tree.evict(tree.heldTokens);
        expect(tree.heldTokens).toBe(0);
      }),
      { numRuns: runs(400) },
    );
  });

  test('evicts the least recently used leaf, whole or from its end', () => {
    const [old, young] = [path(['old', 10]), path(['young', 10])];
    for (const whole of [true, false]) {
      const tree = newTree(0, whole);
      tree.insert(young, 10);
      tree.insert(old, 10);
      tree.match(young, 10, true);
      expect(tree.evict(4)).toBe(whole ? 10 : 4);
      expect(tree.match(old, 10, false).poolTokens).toBe(whole ? 0 : 6);
      expect(tree.match(young, 10, false).poolTokens).toBe(10);
    }
  });

  test('finds an evicted prefix on the host, until the host tier is full', () => {
    const tree = newTree(25);
    const [first, second, third] = [path(['one', 10]), path(['two', 10]), path(['three', 10])];
    for (const each of [first, second]) tree.insert(each, 10);
    expect(tree.evict(20)).toBe(20);
    expect(tree.match(first, 10, false)).toMatchObject({ poolTokens: 0, hostTokens: 10 });
    tree.insert(third, 10);
    expect(tree.hostTokens).toBe(20);
    expect(tree.match(first, 10, false).hostTokens).toBe(0);
    expect(tree.match(second, 10, false).hostTokens).toBe(10);
  });
});
