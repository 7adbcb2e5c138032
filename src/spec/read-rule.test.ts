/** A rule on a command line is the rule of a run file, and its mistakes are told in the words of the command line. */
import { expect, test } from 'vitest';
import { AerieError } from '../base/errors.ts';
import { type RuleWords, readRule, writeRule } from './read-rule.ts';

const WHO = { because: 'it degrades', by: 'model owner' };
const read = (words: Omit<RuleWords, 'because' | 'by'>) => readRule(writeRule({ ...WHO, ...words }));

test.each<[Omit<RuleWords, 'because' | 'by'>, object]>([
  [{ forbid: ['kv-cache=below-16-bit'] }, { forbid: { kvCache: 'below-16-bit' } }],
  [{ forbid: ['kv-cache=below-8-bit', 'weights=requantised'] }, { forbid: { kvCache: 'below-8-bit', weights: 'requantised' } }],
  [{ require: ['kv-cache=bf16'] }, { require: { kvCache: 'bf16' } }],
  [{ min: ['pool=10000000', 'free-gib=2.5'] }, { min: { poolTokens: 10_000_000, freeGiB: 2.5 } }],
  [{ max: ['memory-fraction=0.9'] }, { max: { memoryFraction: 0.9 } }],
])('%j', (words, rule) => {
  expect(read(words)).toEqual({ ...WHO, ...rule });
});

test.each<[unknown, string]>([
  [() => read({}), 'the rule  must have exactly one of forbid, require, min, max'],
  [() => read({ min: ['pool=many'] }), '--min pool  is "many"'],
  [() => read({ min: ['pool='] }), '--min pool  '],
  [() => read({ forbid: ['=x'] }), '--forbid "=x"  is no SUBJECT=VALUE'],
  [
    () => read({ forbid: ['kv-cache=below-8-bit', 'kv-cache=below-16-bit'] }),
    '--forbid "kv-cache"  is given twice; keep one of them',
  ],
  [() => readRule({ forbid: { 'kv-cache': 'below-16-bit' }, by: 'x' }), '--because  '],
  [() => readRule('forbid'), 'the rule  '],
  [() => readRule(undefined), 'the rule  '],
])('no rule %#', (act, line) => {
  let thrown: unknown;
  try {
    (act as () => void)();
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(AerieError);
  const { code, detail } = thrown as AerieError;
  expect(code).toBe('usage.flag');
  expect(
    detail.evidence?.some((one) => one.startsWith(line)),
    detail.evidence?.join('\n'),
  ).toBe(true);
});
