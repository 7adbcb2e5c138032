/** The owner's veto on a running FP8 server, and other rules that come later: what goes, what stays, what the launch then holds. */
import { describe, expect, it } from 'vitest';
import { KIMI, OWNER } from '../../../test/support/recovery-cases.ts';
import { findGpu } from '../../capacity/gpus.ts';
import { findKnownModel } from '../../capacity/known-models.ts';
import { readFacts } from '../../capacity/read-facts.ts';
import { readModelConfig } from '../../capacity/read-model-config.ts';
import type { PolicyRule } from '../../spec/run.ts';
import { describeChange } from './changes.ts';
import type { Flags, RecoveryBasis } from './recovery.ts';
import { type WithoutLeverQuestion, withoutLever } from './without-lever.ts';

const FP8: Flags = {
  tp: 8,
  'mem-fraction-static': 0.9,
  'kv-cache-dtype': 'fp8_e4m3',
  'enable-hierarchical-cache': true,
  'hicache-size': 48,
};
const facts = readFacts({ freeBeforeLoadGiB: 94.04, poolTokens: 376_029, freeAfterGraphsGiB: 3.52 }).facts;
const words = ['--tp', '8', '--mem-fraction-static', '0.9', '--kv-cache-dtype', 'fp8_e4m3'];
const MEASURED: RecoveryBasis = { ...KIMI, observations: [{ facts, flags: words, source: 'the FP8 launch' }] };

const ask = (more: Partial<WithoutLeverQuestion> = {}) =>
  withoutLever({ engine: 'sglang', version: '0.5.8', flags: FP8, rule: OWNER, basis: MEASURED, ...more });
const say = (answer: ReturnType<typeof withoutLever>) =>
  'cannot' in answer ? `cannot: ${answer.cannot}` : answer.changes.map(describeChange).join(', ');

describe('no KV cache below 16 bits', () => {
  it('FP8 becomes explicit bf16, the hierarchical cache stays, and the pool is half: 188K', () => {
    const answer = ask();
    expect(say(answer)).toBe('kv-cache-dtype fp8_e4m3 → bf16');
    if ('cannot' in answer) throw new Error(answer.cannot);
    expect(answer.predicted?.poolTokens).toBeGreaterThan(187_900);
    expect(answer.predicted?.poolTokens).toBeLessThan(188_100);
    expect(answer.predicted?.freeAfterGraphsGiB).toBeCloseTo(3.52, 1);
    expect(answer.because).toMatch(/holds 18\d{4} tokens \(376\d{3} before\), and 3\.\d\d GiB/);
  });

  it('without a model the lever goes all the same, and the log will tell the pool', () => {
    const answer = ask({ basis: undefined });
    expect(say(answer)).toBe('kv-cache-dtype fp8_e4m3 → bf16');
    expect(!('cannot' in answer) && answer.because).toContain('told by its log');
  });

  it('SGLang 0.5.2 has no word for 16 bits: the flag is left out, and auto cannot become FP8 there', () => {
    expect(say(ask({ version: '0.5.2', flags: { tp: 8, 'mem-fraction-static': 0.88, 'kv-cache-dtype': 'fp8_e4m3' } }))).toBe(
      'kv-cache-dtype fp8_e4m3 → left out',
    );
  });

  it('auto on a checkpoint that says FP8 becomes explicit', () => {
    const known = findKnownModel('nvidia/Kimi-K2.5-NVFP4');
    if (known === undefined) throw new Error('the table has no NVFP4');
    const basis = { ...KIMI, shape: readModelConfig(known) };
    expect(say(ask({ basis, flags: { tp: 8, 'mem-fraction-static': 0.88 } }))).toBe('kv-cache-dtype default → bf16');
  });

  it('a launch that keeps the rule is left as it is', () => {
    const answer = ask({ flags: { ...FP8, 'kv-cache-dtype': 'bf16' } });
    expect(answer).toMatchObject({ changes: [] });
  });

  it('where the engine takes FP8 whatever the flag says, that is said', () => {
    const known = findKnownModel('deepseek-ai/DeepSeek-V3.2');
    if (known === undefined) throw new Error('the table has no DeepSeek-V3.2');
    const basis = { shape: readModelConfig(known), gpu: findGpu('B200'), observations: [] };
    expect(say(ask({ basis, version: '0.5.4', flags: { tp: 8 } }))).toMatch(/^cannot: no flag keeps .*whatever the flag says/);
  });

  it('a launch that would then die gets the neutral levers that it needs, and no more', () => {
    // 0.91 leaves 2.58 GiB, and one prefill may need 2.62.
    const answer = ask({ flags: { ...FP8, 'mem-fraction-static': 0.94 } });
    expect(say(answer)).toBe('kv-cache-dtype fp8_e4m3 → bf16, mem-fraction-static 0.94 → 0.9');
  });

  it('vLLM has its own word', () => {
    const flags = { 'tensor-parallel-size': 8, kv_cache_dtype: 'fp8', max_model_len: 32_768 };
    expect(say(ask({ engine: 'vllm', version: '0.16.0', basis: KIMI, flags }))).toBe('kv_cache_dtype fp8 → bfloat16');
  });
});

describe('other rules', () => {
  const rule = (part: Omit<PolicyRule, 'because' | 'by'>): PolicyRule => ({ ...part, because: 'so it is', by: 'owner' });

  it('requantised weights: the flag goes', () => {
    const forbidden = rule({ forbid: { weights: 'requantised' } });
    const flags = { tp: 8, 'mem-fraction-static': 0.88, quantization: 'fp8' };
    const known = findKnownModel('Qwen/Qwen3-32B');
    if (known === undefined) throw new Error('the table has no Qwen3-32B');
    const basis = { ...KIMI, shape: readModelConfig(known) };
    expect(say(ask({ rule: forbidden, flags, basis }))).toBe('quantization fp8 → left out');
    expect(say(ask({ rule: rule({ forbid: { weights: 'below-16-bit' } }), flags: FP8 }))).toMatch(
      /^cannot: the weights are in the format of the checkpoint/,
    );
  });

  it('figures: the flag that they are, or the levers that they follow from', () => {
    expect(say(ask({ rule: rule({ max: { memoryFraction: 0.85 } }) }))).toBe('mem-fraction-static 0.9 → 0.85');
    expect(say(ask({ rule: rule({ max: { runningRequests: 512 } }) }))).toBe('max-running-requests default → 512');
    expect(say(ask({ rule: rule({ min: { freeGiB: 5 } }) }))).toBe('mem-fraction-static 0.9 → 0.88');
    expect(say(ask({ rule: rule({ min: { poolTokens: 9_000_000 } }) }))).toMatch(/^cannot: /);
  });
});
