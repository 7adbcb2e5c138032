import { expect, it } from 'vitest';
import { findLever } from './levers.ts';
import { SGLANG_FLAGS } from './sglang/flags.ts';
import { VLLM_FLAGS } from './vllm/flags.ts';

it('has each flag of both tables, and knows nothing of others', () => {
  for (const { name } of SGLANG_FLAGS.rows) expect([name, findLever('sglang', name).effect]).not.toEqual([name, 'unknown']);
  for (const { name } of VLLM_FLAGS.rows) expect([name, findLever('vllm', name).effect]).not.toEqual([name, 'unknown']);
  expect(findLever('sglang', 'enable-torch-compile').effect).toBe('unknown');
});

it('calls what changes the answers by its name', () => {
  const numerics = (engine: 'sglang' | 'vllm', names: readonly string[]) =>
    names.filter((name) => findLever(engine, name).effect === 'numerics');
  expect(
    numerics(
      'sglang',
      SGLANG_FLAGS.rows.map(({ name }) => name),
    ).sort(),
  ).toEqual([
    'attention-backend',
    'context-length',
    'decode-attention-backend',
    'dtype',
    'kv-cache-dtype',
    'mamba-ssm-dtype',
    'model-path',
    'prefill-attention-backend',
    'quantization',
  ]);
  expect(findLever('vllm', 'kv-cache-dtype')).toMatchObject({ effect: 'numerics', subject: 'kv-cache' });
  expect(findLever('vllm', 'gpu-memory-utilization').effect).toBe('none');
});
