/** A rule that came later, in the book of one server: one flag goes, the rest stays, and what a person writes then is that person's. */
import { expect, test } from 'vitest';
import type { PolicyRule } from '../../spec/run.ts';
import { NOTHING_KEPT, planFlags } from '../recovery/kept-changes.ts';
import { bookUnderRule, isNoted, noteRule, sayChanged } from './book-under-rule.ts';
import type { ServerBook } from './launch-book.ts';

const RULE: PolicyRule = { forbid: { kvCache: 'below-16-bit' }, because: 'it degrades', by: 'owner' };
const BOOK: ServerBook = { v: 1, launches: 3, tries: [], isPending: false, kept: NOTHING_KEPT };
const FP8 = { tp: 8, 'kv-cache-dtype': 'fp8_e4m3', 'mem-fraction-static': 0.9 };
const known = {
  engine: 'sglang' as const,
  ...{ given: FP8, version: () => '0.5.8', policy: () => [], basis: () => undefined },
  limits: () => ({ inFlight: 8, longestRequestTokens: 64 }),
};

test('the lever goes by a change that is kept, its reason is the rule, and the other flags stay', () => {
  const { book, changed, cannot } = bookUnderRule(RULE, BOOK, FP8, known);
  expect(cannot).toBe('');
  expect(changed).toMatchObject({ launch: 4, changes: 'kv-cache-dtype fp8_e4m3 → bf16' });
  expect(changed?.['because']).toMatch(/^forbid kv-cache: below-16-bit, it degrades \(decided by owner\); /);
  expect(planFlags({ given: FP8, env: {}, kept: book.kept }).flags).toEqual({ ...FP8, 'kv-cache-dtype': 'bf16' });
  expect(isNoted(RULE, book)).toBe(true);
});

test('a rule that no flag keeps is noted too, so that what a person writes next is judged as it stands', () => {
  const rule: PolicyRule = { min: { weightBits: 16 }, because: 'x', by: 'y' };
  const { book, changed, cannot } = bookUnderRule(rule, BOOK, FP8, known);
  expect(cannot).toContain('no flag changes');
  expect(changed).toBeUndefined();
  expect(book).toEqual({ ...BOOK, rules: ['min weight-bits: 16'] });
});

test('a rule is noted once', () => {
  const noted = noteRule(RULE, BOOK);
  expect(isNoted(RULE, BOOK)).toBe(false);
  expect(noteRule({ ...RULE, because: 'said again' }, noted)).toBe(noted);
});

test('a launch is ended for the rule where the rule is what differs, else for the run file', () => {
  const { book } = bookUnderRule(RULE, BOOK, FP8, known);
  const byRule = planFlags({ given: FP8, env: {}, kept: book.kept }).applied;
  expect(sayChanged({ flags: FP8 }, byRule)).toBe('a rule has changed its kv-cache-dtype');
  expect(sayChanged({ flags: { ...FP8, 'kv-cache-dtype': 'bf16' } }, byRule)).toBe('the run file has other flags now');
  expect(sayChanged({ flags: FP8 }, [])).toBe('the run file has other flags now');
});
