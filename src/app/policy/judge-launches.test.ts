/** Which launches a rule that came later takes: by what is known of them, in whatever way it was found out. */
import { expect, test } from 'vitest';
import { UNKNOWN_FACTS } from '../../engine/dialect.ts';
import type { RecordedLaunch } from '../../ledger/ledger.ts';
import type { PolicyRule } from '../../spec/run.ts';
import { classOfFacts, classOfLaunch, findBroken } from './judge-launches.ts';

const launch = (id: number, kvCacheDtype: string, detail: object = {}): RecordedLaunch => ({
  ...{ id, server: 's', engine: 'sglang', engineVersion: '0.5.8', kvCacheDtype, weights: 'unknown', policyHash: '' },
  ...{ detail: JSON.stringify(detail), startedAt: 0, isWithdrawn: false },
});
const idsOf = (rule: Partial<PolicyRule>, launches: readonly RecordedLaunch[]) =>
  findBroken({ ...rule, because: 'x', by: 'y' }, launches).map(({ launch: { id } }) => id);

test('what a server does not say is no figure', () => {
  expect(classOfFacts(UNKNOWN_FACTS)).toEqual({ kvCacheDtype: 'unknown', figures: {} });
  const told = { ...UNKNOWN_FACTS, contextTokens: 8192, poolTokens: 159_277, sequences: 256 };
  expect(classOfFacts(told).figures).toEqual({ contextTokens: 8192, poolTokens: 159_277, runningRequests: 256 });
});

test('what was found out goes before what the server said of itself, and the row before both for the type', () => {
  const facts = { ...UNKNOWN_FACTS, kvCacheDtype: 'auto', poolTokens: 100 };
  const found = { weightBits: 4.5, figures: { poolTokens: 90, memoryFraction: 0.9 } };
  expect(classOfLaunch(launch(1, 'bf16', { facts, class: found }))).toEqual({
    ...{ kvCacheDtype: 'bf16', weightBits: 4.5 },
    figures: { poolTokens: 90, memoryFraction: 0.9 },
  });
  expect(classOfLaunch(launch(1, 'fp8_e4m3'))).toEqual({ kvCacheDtype: 'fp8_e4m3', figures: {} });
});

test.each<[string, Partial<PolicyRule>, number[]]>([
  ['numerics that nobody can tell break it', { forbid: { kvCache: 'below-16-bit' } }, [2, 3, 4]],
  ['below 8 bits', { forbid: { kvCache: 'below-8-bit' } }, [4]],
  ['a size that nobody can tell keeps it', { min: { poolTokens: 200_000 } }, [1]],
])('%s', (_, rule, broken) => {
  const pool = (poolTokens: number) => ({ class: { figures: { poolTokens } } });
  const launches = [
    launch(1, 'bf16', pool(159_277)),
    launch(2, 'fp8_e4m3', pool(318_554)),
    launch(3, 'fp8_e5m2'),
    launch(4, 'unknown'),
  ];
  expect(idsOf(rule, launches)).toEqual(broken);
});

test('what is withdrawn already is not taken twice, and the reason names what it really was', () => {
  const rule = { forbid: { kvCache: 'below-16-bit' }, because: 'x', by: 'y' } as const;
  const [gone, there] = [{ ...launch(1, 'fp8_e4m3'), isWithdrawn: true }, launch(2, 'fp8_e4m3')];
  expect(findBroken(rule, [gone, there])).toMatchObject([
    { launch: { id: 2 }, because: expect.stringContaining('fp8_e4m3') as string },
  ]);
});
