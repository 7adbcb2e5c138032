/** The launches of the story, in which levers were changed together. Pools, counts and rates are the story's own. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { explainChange, type LaunchSeen, type LoadSeen } from './explain-change.ts';
import { findLevers, withoutLevers } from './levers.ts';

const BF16 = { type: 'bf16', bits: 16 };
const FP8 = { type: 'fp8_e4m3', bits: 8 };
const HICACHE = { 'enable-hierarchical-cache': true, 'hicache-size': 48 };

function launch(
  name: string,
  flags: LaunchSeen['flags'],
  seen: { pool: number; kv?: typeof BF16; left?: number; load?: LoadSeen },
): LaunchSeen {
  return {
    name,
    flags: { tp: 8, port: 30000, ...flags },
    verified: { kvType: seen.kv ?? BF16, poolTokens: seen.pool, freeAfterGraphsGiB: seen.left },
    load: seen.load,
  };
}

const AT_85 = launch(
  '0.85 bf16',
  { 'mem-fraction-static': 0.85 },
  { pool: 116_176, load: { running: 42.5, queued: 107.5, inFlight: 150, tokensPerSecond: 725 } },
);
const AT_88 = launch(
  '0.88 bf16 + host cache',
  { '--mem-fraction-static': 0.88, ...HICACHE },
  { pool: 159_277, left: 5.47, load: { running: 34.5, queued: 115.5, inFlight: 150, tokensPerSecond: 600 } },
);
const AT_90 = launch(
  '0.90 fp8 + host cache',
  { mem_fraction_static: 0.9, 'kv-cache-dtype': 'fp8_e4m3', ...HICACHE },
  { pool: 376_029, kv: FP8, left: 3.52, load: { running: 142, queued: 0, inFlight: 150, tokensPerSecond: 1375 } },
);

describe('0.88 bf16 → 0.90 fp8, both with the hierarchical cache', () => {
  const { levers, confounded, separate, lines, clientLimited, dtypeFactor, bytesFactor } = explainChange({
    before: AT_88,
    after: AT_90,
  });

  it('is twice the pool by its type and 1.18 times by its fraction', () => {
    expect(dtypeFactor).toBe(2);
    expect(bytesFactor).toBeCloseTo(1.18, 2);
    expect(levers.map(({ name, poolFactor }) => [name, poolFactor?.toFixed(2)])).toEqual([
      ['kv-cache-dtype', '2.00'],
      ['mem-fraction-static', '1.18'],
    ]);
    expect(lines.join('\n')).toContain('leaves 3.52 GiB per GPU instead of 5.47');
  });

  it('leaves 1.74 times at least that no lever explains, because 34 + 116 = 150 were asked', () => {
    expect(confounded).toMatchObject({ isLowerBound: true, among: ['lengths and age of the requests'] });
    expect(confounded?.factor).toBeCloseTo(142 / 34.5 / (376_029 / 159_277), 6);
    expect(clientLimited).toEqual(['after']);
    expect(lines.join('\n')).toContain("client-limited: queue 0 at the client's own 150");
  });

  it('is separated by 0.90 with the type taken back: 188,014 tokens, of which 41 requests follow', () => {
    expect(separate?.flags).toEqual({ tp: 8, port: 30000, mem_fraction_static: 0.9, ...HICACHE });
    expect(separate?.because).toContain('Its pool has 188,015 tokens. By the pool alone 41 run of 150');
  });
});

describe('0.85 → 0.88 with the hierarchical cache', () => {
  const { levers, confounded, separate, lines } = explainChange({ before: AT_85, after: AT_88 });

  it('is 1.37 times the pool by the fraction, and nothing of it by the host cache', () => {
    expect(levers.map(({ name, poolFactor }) => [name, poolFactor?.toFixed(2)])).toEqual([
      ['enable-hierarchical-cache', '1.00'],
      ['hicache-size', '1.00'],
      ['mem-fraction-static', '1.37'],
    ]);
    expect(lines.join('\n')).toContain('keeps prefixes in host memory');
  });

  it('ran fewer requests in a larger pool: confounded with the cache and with the requests', () => {
    expect(confounded?.factor).toBeCloseTo(34.5 / 42.5 / (159_277 / 116_176), 6);
    expect(confounded?.among).toEqual(['enable-hierarchical-cache', 'hicache-size', 'lengths and age of the requests']);
    expect(lines.join('\n')).toContain('0.81x running (42.5 → 34.5), 0.83x tok/s');
  });

  it('is separated by 0.88 without the cache', () => {
    expect(separate?.flags).toEqual({ tp: 8, port: 30000, '--mem-fraction-static': 0.88 });
    expect(separate?.because).toContain('enable-hierarchical-cache left out and hicache-size left out');
    expect(separate?.because).toContain('By the pool alone 58 run of 150');
  });
});

describe('three levers at once, 0.85 bf16 → 0.90 fp8 with the cache', () => {
  it('splits the pool into 2 and 1.62, and names the launch without the cache', () => {
    const { dtypeFactor, bytesFactor, levers, separate } = explainChange({ before: AT_85, after: AT_90 });
    expect((dtypeFactor ?? 0) * (bytesFactor ?? 0)).toBeCloseTo(376_029 / 116_176, 6);
    expect(bytesFactor).toBeCloseTo(1.62, 2);
    expect(levers).toHaveLength(4);
    expect(separate?.flags).toEqual({ tp: 8, port: 30000, mem_fraction_static: 0.9, 'kv-cache-dtype': 'fp8_e4m3' });
  });
});

describe('what is no lever, or a hidden one', () => {
  it('one lever needs no other launch', () => {
    const only = launch('0.88', { 'mem-fraction-static': 0.88 }, { pool: 159_277 });
    const { separate, levers, gain, lines } = explainChange({ before: AT_85, after: only });
    expect([separate, gain, levers.length]).toEqual([undefined, undefined, 1]);
    expect(lines).toContain('Not both were seen at work: nothing is said of speed.');
  });

  it('a type that became FP8 without its flag is a lever', () => {
    const hidden = launch('auto', { 'mem-fraction-static': 0.88, ...HICACHE }, { pool: 318_554, kv: FP8 });
    expect(explainChange({ before: AT_88, after: hidden }).levers).toMatchObject([
      { name: 'kv-cache-dtype', from: 'bf16', to: 'fp8_e4m3', poolFactor: 2 },
    ]);
  });

  it('another port, spelling or variable: only the variable counts, and is taken back', () => {
    const env = { NCCL_P2P_DISABLE: '1' };
    const after = {
      ...AT_88,
      env,
      flags: { ...AT_88.flags, port: 31000, 'kv-cache-dtype': 'torch.bfloat16', 'attention-backend': 'triton' },
    };
    const before = { ...AT_88, flags: { ...AT_88.flags, 'kv-cache-dtype': 'bf16' } };
    const { levers } = explainChange({ before, after });
    expect(levers.map(({ name, poolFactor }) => [name, poolFactor])).toEqual([
      ['attention-backend', undefined],
      ['NCCL_P2P_DISABLE', undefined],
    ]);
    const more = { ...after, flags: { ...after.flags, 'mem-fraction-static': 0.9 } };
    expect(explainChange({ before, after: { ...AT_90, env } }).separate).toMatchObject({ env: {} });
    expect(findLevers(before, more).map(({ name }) => name)).toContain('mem-fraction-static');
  });

  it('a pool or a type that is not known gives no factor', () => {
    const unknown = { type: 'unknown', bits: undefined } as unknown as typeof BF16;
    const noType = explainChange({ before: AT_88, after: { ...AT_90, verified: { ...AT_90.verified, kvType: unknown } } });
    expect(noType.levers.map(({ poolFactor }) => poolFactor)).toEqual([undefined, undefined]);
    const noPool = explainChange({ before: AT_88, after: { ...AT_90, verified: { ...AT_90.verified, poolTokens: 0 } } });
    expect(noPool).toMatchObject({ poolFactor: undefined, gain: undefined, confounded: undefined });
    expect(noPool.lines.join('\n')).not.toMatch(/NaN|Infinity/);
  });

  it('a plan tells two levers of the pool apart', () => {
    const after = launch('both', { 'mem-fraction-static': 0.88, 'max-total-tokens': 150_000 }, { pool: 150_000 });
    const apart = explainChange({
      before: AT_85,
      after,
      predictPool: (flags) => ('max-total-tokens' in flags ? 116_176 : 159_283),
    });
    expect(apart.levers.map(({ name, poolFactor }) => [name, poolFactor?.toFixed(2)])).toEqual([
      ['max-total-tokens', '1.00'],
      ['mem-fraction-static', '1.37'],
    ]);
    expect(explainChange({ before: AT_85, after }).levers.map(({ poolFactor }) => poolFactor)).toEqual([undefined, undefined]);
  });
});

it('taking back every lever gives the launch before, whatever was changed', () => {
  const value = fc.oneof(fc.integer(), fc.boolean(), fc.string(), fc.array(fc.integer(), { minLength: 1, maxLength: 3 }));
  const name = fc.constantFrom('mem-fraction-static', 'kv-cache-dtype', 'hicache-size', 'max-running-requests', 'x', 'tp');
  const flags = fc.dictionary(name, value);
  fc.assert(
    fc.property(flags, flags, (before, after) => {
      const back = withoutLevers(after, findLevers({ flags: before }, { flags: after }));
      expect(findLevers({ flags: before }, { flags: back })).toEqual([]);
    }),
  );
});
