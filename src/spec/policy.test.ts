import { describe, expect, it } from 'vitest';
import { countBits, isSameType } from '../base/element-type.ts';
import { checkPolicy, findPlannedKvCacheDtype } from './policy.ts';
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
    const server: ServerSpec = { name: 's', engine: 'embedded', flags: {}, port: 0 };
    expect(findPlannedKvCacheDtype(server)).toBe('f16');
    expect(findPlannedKvCacheDtype({ ...server, flags: { 'kv-type': 'q8_0' } })).toBe('q8_0');
    expect(findPlannedKvCacheDtype({ ...server, attach: 'http://x' })).toBe('');
  });
});
