/** A rule against KV caches below 16 bits, on plans: every spelling, every alias of the flag, and every `auto` that engines turn into FP8. */
import { describe, expect, it } from 'vitest';
import { checkPolicy, isBroken } from '../spec/policy.ts';
import type { PolicyRule } from '../spec/run.ts';
import { findGpu } from './gpus.ts';
import { findKnownModel } from './known-models.ts';
import { planLaunch } from './plan-launch.ts';
import { readModelConfig } from './read-model-config.ts';

const RULE: PolicyRule = { forbid: { kvCache: 'below-16-bit' }, because: 'it degrades the model', by: 'owner' };

function breaks(engine: 'sglang' | 'vllm', version: string, model: string, gpu: string, line: string): boolean {
  const known = findKnownModel(model);
  if (known === undefined) throw new Error(`the table has no ${model}`);
  const { launch } = planLaunch({
    engine,
    version,
    shape: readModelConfig(known),
    gpu: findGpu(gpu),
    flags: line.split(' ').filter((word) => word !== ''),
  });
  const [check] = checkPolicy([RULE], { kvCacheDtype: launch.kvType.type });
  if (check === undefined) throw new Error('no check');
  return isBroken(check);
}

const KIMI = 'moonshotai/Kimi-K2.5';
const NVFP4 = 'nvidia/Kimi-K2.5-NVFP4';
const SPARSE = 'deepseek-ai/DeepSeek-V3.2';
const RTX = 'RTX PRO 6000';

describe('SGLang', () => {
  it.each([
    ['', false],
    ['--kv-cache-dtype auto', false],
    ['--kv-cache-dtype bf16', false],
    ['--kv-cache-dtype=bfloat16', false],
    ['--kv-cache-dtype fp8_e4m3', true],
    ['--kv-cache-dtype=fp8_e5m2', true],
    ['--kv-cache fp8_e4m3', true], // the beginning of one flag alone
    ['--kv-cache-dtype fp4_e2m1', true],
    ['--kv-cache-dtype bf16 --kv-cache-dtype fp8_e4m3', true], // the last wins
  ])('0.5.8, %s: %s', (line, broken) => {
    expect(breaks('sglang', '0.5.8', KIMI, RTX, `--tp 8 ${line}`)).toBe(broken);
  });

  it.each([
    ['0.5.18', KIMI, RTX, '--kv-cache-dtype nvfp4', true],
    ['0.5.18', KIMI, RTX, '--kv-cache-dtype mxfp8', true],
    ['0.5.8', NVFP4, RTX, '', true], // the checkpoint turns auto into FP8
    ['0.5.8', NVFP4, RTX, '--kv-cache-dtype bf16', false],
    ['0.5.2', NVFP4, RTX, '', false],
    ['0.5.8', SPARSE, 'B200', '', true],
    ['0.5.8', SPARSE, RTX, '', true],
    ['0.5.8', SPARSE, 'H200', '', false],
    ['0.5.4', SPARSE, 'B200', '--kv-cache-dtype bf16', true], // an explicit flag is passed over
    ['0.5.5', SPARSE, 'B200', '--kv-cache-dtype bf16', false],
    ['0.5.12', 'deepseek-ai/DeepSeek-V4-Flash', 'H200', '', true],
    ['0.5.18', 'moonshotai/Kimi-K3', 'B200', '--dcp-size 8 --attention-backend tokenspeed_mla', true],
    ['0.5.18', 'moonshotai/Kimi-K3', 'B200', '--decode-context-parallel-size=8 --kv-cache-dtype bf16', false],
  ])('%s, %s on %s, %s: %s', (version, model, gpu, line, broken) => {
    expect(breaks('sglang', version, model, gpu, `--tp 8 ${line}`)).toBe(broken);
  });
});

describe('vLLM', () => {
  it.each([
    ['0.16.0', KIMI, '', false],
    ['0.16.0', KIMI, '--kv-cache-dtype bfloat16', false],
    ['0.16.0', KIMI, '--kv_cache_dtype=fp8', true],
    ['0.16.0', KIMI, '--kv-cache-dtype fp8_e5m2', true],
    ['0.16.0', NVFP4, '', true],
    ['0.16.0', NVFP4, '--kv-cache-dtype bfloat16', false],
    ['0.21.0', SPARSE, '--kv-cache-dtype fp8', true],
    ['0.21.0', SPARSE, '--kv-cache-dtype bfloat16', false],
  ])('%s, %s, %s: %s', (version, model, line, broken) => {
    expect(breaks('vllm', version, model, 'H200', `-tp 8 ${line}`)).toBe(broken);
  });
});
