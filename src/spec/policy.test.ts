import { describe, expect, it } from 'vitest';
import { countBits, isSameType } from '../base/element-type.ts';
import { checkPolicy, decideLever, describeRule, findPlannedKvCacheDtype, isBroken } from './policy.ts';
import { readRunFile } from './read-run-file.ts';
import type { PolicyRule, ServerSpec } from './run.ts';

const RULE: PolicyRule = { forbid: { kvCache: 'below-16-bit' }, because: 'it degrades the model', by: 'model owner' };
const check = (kvCacheDtype: string) => checkPolicy([RULE], { kvCacheDtype })[0];

describe('countBits', () => {
  it.each([
    [16, ['f16', 'F16', 'fp16', 'float16', 'half', 'bf16', 'bfloat16', 'torch.bfloat16', 'torch.float16']],
    [32, ['f32', 'float32', 'float']],
    [8, ['fp8', 'fp8_e4m3', 'fp8-e5m2', 'float8_e4m3fn', 'torch.float8_e4m3fnuz', 'fp8_ds_mla', 'fp8_inc', 'int8']],
    [8.5, ['q8_0', 'Q8_0']],
    [4.5, ['q4_0', 'iq4_nl', 'nvfp4']],
    [4, ['fp4_e2m1', 'int4']],
    [undefined, ['auto', '', 'unknown', 'turbo', 'f160', 'bf1600']],
  ])('%s bits', (bits, names) => {
    expect(names.map(countBits)).toEqual(names.map(() => bits));
  });
});

it('takes two spellings for one type, and two types of one width for two', () => {
  expect(isSameType('bf16', 'torch.bfloat16')).toBe(true);
  expect(isSameType('fp8', 'float8_e4m3fn')).toBe(true);
  expect(isSameType('bf16', 'f16')).toBe(false);
  expect(isSameType('fp8_e4m3', 'fp8_e5m2')).toBe(false);
});

describe('checkPolicy', () => {
  it('keeps, breaks, and says when it cannot tell', () => {
    expect(check('bfloat16')).toMatchObject({ rule: RULE, kept: true, known: true });
    expect(check('q8_0')).toMatchObject({
      kept: false,
      known: true,
      because: 'the KV cache is q8_0, 8.5 bits per element; the rule asks for 16 or more',
    });
    expect(check('unknown')).toMatchObject({ kept: false, known: false, because: 'nothing says which type the KV cache has' });
    expect(check('auto')).toMatchObject({
      kept: false,
      known: false,
      because: 'the KV cache is auto, which does not tell its bits per element',
    });
    expect(checkPolicy([], { kvCacheDtype: 'q8_0' })).toEqual([]);
  });

  it('knows before a launch what the flags ask for', () => {
    const server: ServerSpec = {
      name: 's',
      engine: 'embedded',
      flags: {},
      port: 0,
      gpu: '',
      engineVersion: '',
      setup: [],
      env: {},
      command: '',
      workdir: '',
      log: '',
    };
    expect(findPlannedKvCacheDtype(server)).toBe('f16');
    expect(findPlannedKvCacheDtype({ ...server, flags: { 'kv-type': 'q8_0' } })).toBe('q8_0');
    expect(findPlannedKvCacheDtype({ ...server, attach: { kind: 'url', written: 'http://x', url: 'http://x' } })).toBe('');
  });
});

describe('the four verbs', () => {
  const reason = { because: 'it matters', by: 'owner' };
  const judge = (rule: Omit<PolicyRule, 'because' | 'by'>, launch: Parameters<typeof checkPolicy>[1]) => {
    const [check] = checkPolicy([{ ...rule, ...reason }], launch);
    if (check === undefined) throw new Error('no check');
    return { ...check, broken: isBroken(check) };
  };

  it.each<[string, Omit<PolicyRule, 'because' | 'by'>, Parameters<typeof checkPolicy>[1], boolean, boolean]>([
    ['8 bits keep below-8-bit', { forbid: { kvCache: 'below-8-bit' } }, { kvCacheDtype: 'fp8_e4m3' }, true, true],
    ['4 bits break it', { forbid: { kvCache: 'below-8-bit' } }, { kvCacheDtype: 'nvfp4' }, false, true],
    ['weights of 4.5 bits', { forbid: { weights: 'below-8-bit' } }, { kvCacheDtype: 'bf16', weightBits: 4.5 }, false, true],
    ['weights nobody knows', { forbid: { weights: 'below-8-bit' } }, { kvCacheDtype: 'bf16' }, false, false],
    [
      'weights quantised anew',
      { forbid: { weights: 'requantised' } },
      { kvCacheDtype: 'bf16', areWeightsAsPublished: false },
      false,
      true,
    ],
    [
      'weights as published',
      { require: { weights: 'as-published' } },
      { kvCacheDtype: 'bf16', areWeightsAsPublished: true },
      true,
      true,
    ],
    ['a type under another name', { require: { kvCache: 'bfloat16' } }, { kvCacheDtype: 'torch.bfloat16' }, true, true],
    ['another type of the same width', { require: { kvCache: 'bf16' } }, { kvCacheDtype: 'f16' }, false, true],
    ['auto is no type', { require: { kvCache: 'bf16' } }, { kvCacheDtype: 'auto' }, false, false],
    [
      'a pool that is reached',
      { min: { poolTokens: 100_000 } },
      { kvCacheDtype: 'bf16', figures: { poolTokens: 116_000 } },
      true,
      true,
    ],
    [
      'a pool that is not',
      { min: { poolTokens: 200_000 } },
      { kvCacheDtype: 'bf16', figures: { poolTokens: 116_000 } },
      false,
      true,
    ],
    [
      'a fraction that is passed',
      { max: { memoryFraction: 0.92 } },
      { kvCacheDtype: 'bf16', figures: { memoryFraction: 0.93 } },
      false,
      true,
    ],
    ['bits as a figure', { min: { kvCacheBits: 16 } }, { kvCacheDtype: 'fp8' }, false, true],
    [
      'one part of two broken',
      { min: { contextTokens: 1, poolTokens: 9 } },
      { kvCacheDtype: '', figures: { poolTokens: 3 } },
      false,
      true,
    ],
  ])('%s', (_, rule, launch, kept, known) => {
    expect(judge(rule, launch)).toMatchObject({ kept, known });
  });

  it('an unknown about the numerics breaks a rule, an unknown figure does not', () => {
    expect(judge({ forbid: { kvCache: 'below-16-bit' } }, { kvCacheDtype: 'unknown' }).broken).toBe(true);
    expect(judge({ min: { kvCacheBits: 16 } }, { kvCacheDtype: 'unknown' }).broken).toBe(true);
    expect(judge({ max: { memoryFraction: 0.9 } }, { kvCacheDtype: 'bf16' }).broken).toBe(false);
  });

  it('a rule is told in the words of the file', () => {
    expect(describeRule(RULE)).toBe('forbid kv-cache: below-16-bit');
    expect(describeRule({ min: { poolTokens: 5, freeGiB: 2 }, ...reason })).toBe('min pool: 5, min free-gib: 2');
  });
});

it('a lever is pulled where it changes nothing or a rule speaks of it, and else asked about', () => {
  const touch = (effect: 'none' | 'order' | 'numerics' | 'unknown', subject: 'kv-cache' | 'weights' | 'attention' | 'none') => ({
    effect,
    subject,
  });
  expect(decideLever(touch('none', 'none'), [])).toBe('allowed');
  expect(decideLever(touch('order', 'none'), [])).toBe('allowed');
  expect(decideLever(touch('numerics', 'kv-cache'), [])).toBe('ask');
  expect(decideLever(touch('numerics', 'kv-cache'), [RULE])).toBe('by-rule');
  expect(decideLever(touch('numerics', 'weights'), [RULE])).toBe('ask');
  expect(decideLever(touch('numerics', 'attention'), [RULE])).toBe('ask');
  expect(decideLever(touch('unknown', 'none'), [RULE])).toBe('ask');
});

it('is read from a run file with all its verbs', () => {
  const text = `
run: x
model: m
partitions: [{ name: B1, from: b.jsonl }]
policy:
  - { forbid: { weights: requantised }, because: a, by: b }
  - { require: { kv-cache: bf16, weights: as-published }, because: a, by: b }
  - { min: { context: 65536, pool: 100000, free-gib: 2 }, because: a, by: b }
  - { max: { memory-fraction: 0.92, running-requests: 256 }, because: a, by: b }
`;
  expect(readRunFile(text, '/p/run.yaml').policy.map(describeRule)).toEqual([
    'forbid weights: requantised',
    'require kv-cache: bf16, require weights: as-published',
    'min context: 65536, min pool: 100000, min free-gib: 2',
    'max running-requests: 256, max memory-fraction: 0.92',
  ]);
});
