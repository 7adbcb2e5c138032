import { describe, expect, it } from 'vitest';
import { AerieError } from '../base/errors.ts';
import { findKnownModel, KNOWN_MODELS } from './known-models.ts';
import type { ModelShape } from './model-shape.ts';
import { matchesModule } from './quantisation.ts';
import { readModelConfig } from './read-model-config.ts';

const shapeOf = (name: string): ModelShape => {
  const known = findKnownModel(name);
  if (known === undefined) throw new Error(`the table has no ${name}`);
  return readModelConfig(known);
};
const parametersOf = (shape: ModelShape) =>
  shape.weights.filter(({ name }) => !name.includes('absorbed')).reduce((sum, part) => sum + part.parameters, 0) / 1e9;
const GiBOf = (shape: ModelShape) => shape.weights.reduce((sum, part) => sum + part.bytes, 0) / 2 ** 30;
const read = (config: Record<string, unknown>, more = {}) => readModelConfig({ name: 'a/b', config, source: 'test', ...more });
const SMALL = {
  model_type: 'llama',
  num_hidden_layers: 2,
  hidden_size: 64,
  intermediate_size: 128,
  num_attention_heads: 4,
  vocab_size: 100,
};

/** Billions of parameters as their makers publish them, without layers for multi-token prediction. */
it.each([
  ['deepseek-ai/DeepSeek-V3', 671],
  ['moonshotai/Kimi-K2-Instruct', 1026],
  ['moonshotai/Kimi-Linear-48B-A3B-Instruct', 49.1],
  ['deepseek-ai/DeepSeek-V2-Lite-Chat', 15.7],
  ['zai-org/GLM-5', 744],
  ['zai-org/GLM-4.5', 353],
  ['zai-org/GLM-4.5-Air', 107],
  ['Qwen/Qwen3-235B-A22B', 235.1],
  ['Qwen/Qwen3-30B-A3B', 30.5],
  ['Qwen/Qwen3-Coder-480B-A35B-Instruct', 480],
  ['Qwen/Qwen3-Next-80B-A3B-Instruct', 79.7],
  ['Qwen/Qwen3.5-397B-A17B', 397],
  ['Qwen/Qwen3-0.6B', 0.596],
  ['Qwen/Qwen2.5-7B-Instruct', 7.62],
  ['meta-llama/Llama-3.1-8B-Instruct', 8.03],
  ['meta-llama/Llama-3.3-70B-Instruct', 70.6],
  ['meta-llama/Llama-3.1-405B-Instruct', 405.9],
  ['meta-llama/Llama-4-Maverick-17B-128E-Instruct', 400],
  ['openai/gpt-oss-120b', 116.8],
  ['openai/gpt-oss-20b', 20.9],
  ['MiniMaxAI/MiniMax-M2.5', 229],
  ['mistralai/Mixtral-8x7B-v0.1', 46.7],
  ['google/gemma-2-9b-it', 9.24],
  ['google/gemma-3-27b-it', 27.4],
  ['nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16', 31.6],
])('%s has %s B parameters', (name, billions) => {
  expect(Math.abs(parametersOf(shapeOf(name)) / billions - 1)).toBeLessThan(0.006);
});

describe('quantised weights', () => {
  it.each([
    ['moonshotai/Kimi-K2.5', 4.5, 555], // 594 GB published
    ['deepseek-ai/DeepSeek-V3', 8.002, 629],
    ['nvidia/Kimi-K2.5-NVFP4', 4.5, 551],
    ['openai/gpt-oss-120b', 4.25, 60.7],
    ['Qwen/Qwen3-30B-A3B-FP8', 8.002, 29],
    ['nvidia/Llama-3.1-70B-Instruct-FP8', 8, 67.7],
  ])('%s: %s bits, %s GiB', (name, bits, GiB) => {
    const shape = shapeOf(name);
    expect(shape.quantisation.weightBits).toBeCloseTo(bits, 2);
    expect(Math.abs(GiBOf(shape) / GiB - 1)).toBeLessThan(0.01);
  });

  it('reads AWQ, GPTQ and AutoRound, and names what it does not know', () => {
    const with4 = (quant_method: string) =>
      read({ ...SMALL, quantization_config: { quant_method, bits: 4, group_size: 128 } }).quantisation;
    for (const method of ['awq', 'gptq', 'auto-round']) expect(with4(method).weightBits).toBeCloseTo(4.156, 3);
    const odd = read({ ...SMALL, quantization_config: { quant_method: 'someday' } });
    expect(odd.quantisation.weightBits).toBe(16);
    expect(odd.notModelled).toEqual(['weights quantised by "someday", counted as 16 bits']);
  });

  it('takes the KV hints of ModelOpt and of compressed-tensors apart', () => {
    expect(shapeOf('nvidia/Kimi-K2.5-NVFP4').quantisation.kvCacheAlgorithm).toBe('FP8');
    const scheme = read({
      ...SMALL,
      quantization_config: { quant_method: 'compressed-tensors', kv_cache_scheme: { num_bits: 8 } },
    });
    expect(scheme.quantisation).toMatchObject({ kvCacheAlgorithm: '', hasKvCacheScheme: true });
    const beside = read(SMALL, { hfQuantConfig: { quantization: { quant_algo: 'FP8', kv_cache_quant_algo: 'FP8' } } });
    expect(beside.quantisation).toMatchObject({ method: 'FP8', weightBits: 8, kvCacheAlgorithm: 'FP8' });
  });

  it('matches the patterns of ignore lists without running them', () => {
    const name = 'layers.30.self_attn.o_proj';
    expect(matchesModule('re:.*self_attn.*', name)).toBe(true);
    expect(matchesModule('language_model.model.layers.30.self_attn*', name)).toBe(true);
    expect(matchesModule('language_model.model.layers.3.self_attn*', name)).toBe(false);
    expect(matchesModule('model.layers.*.self_attn', name)).toBe(true);
    expect(matchesModule('re:.*mlp\\.(gate|up)_proj.*', 'layers.0.mlp.up_proj')).toBe(true);
    expect(matchesModule('re:.*mlp\\.(gate|up)_proj.*', 'layers.0.mlp.experts.0.up_proj')).toBe(false);
    expect(matchesModule('gate', 'layers.5.mlp.gate')).toBe(true);
    // A pattern that would keep a backtracking matcher busy for years.
    expect(matchesModule(`re:${'(a+)+'.repeat(40)}$`, 'a'.repeat(60))).toBe(false);
  });
});

describe('caches', () => {
  it.each([
    ['moonshotai/Kimi-K2.5', [['latent', 61]]],
    [
      'Qwen/Qwen3-Next-80B-A3B-Instruct',
      [
        ['heads', 12],
        ['state', 36],
      ],
    ],
    [
      'moonshotai/Kimi-Linear-48B-A3B-Instruct',
      [
        ['latent', 7],
        ['state', 20],
      ],
    ],
    [
      'openai/gpt-oss-20b',
      [
        ['heads', 12],
        ['heads', 12],
      ],
    ],
    [
      'google/gemma-3-27b-it',
      [
        ['heads', 10],
        ['heads', 52],
      ],
    ],
    [
      'meta-llama/Llama-4-Scout-17B-16E-Instruct',
      [
        ['heads', 12],
        ['heads', 36],
      ],
    ],
    ['deepseek-ai/DeepSeek-V4-Flash', [['compressed', 44]]],
    [
      'nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16',
      [
        ['heads', 6],
        ['state', 23],
      ],
    ],
  ])('of %s', (name, groups) => {
    expect(shapeOf(name).caches.map(({ kind, layers }) => [kind, layers])).toEqual(groups);
  });
});

it('spreads what the checkpoint holds beyond the count, and not another precision', () => {
  const counted = GiBOf(read(SMALL));
  expect(GiBOf(read(SMALL, { checkpointBytes: counted * 1.02 * 2 ** 30 }))).toBeCloseTo(counted * 1.02, 9);
  const other = read(SMALL, { checkpointBytes: counted * 2 * 2 ** 30 });
  expect(GiBOf(other)).toBe(counted);
  expect(other.sources.join()).toContain('2.00 times as many bytes');
});

describe('an unknown shape', () => {
  it.each([
    [{}, 'num_hidden_layers'],
    [{ ...SMALL, vocab_size: undefined }, 'vocab_size'],
    [{ ...SMALL, num_attention_heads: '4' }, 'num_attention_heads'],
    [{ ...SMALL, hidden_size: -1 }, 'hidden_size'],
    [{ ...SMALL, kv_lora_rank: 8 }, 'qk_rope_head_dim'],
    [{ ...SMALL, num_experts: 4 }, 'num_experts_per_tok'],
  ])('names the field: %j', (config, field) => {
    const given = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined));
    try {
      read(given);
    } catch (error) {
      expect(error).toBeInstanceOf(AerieError);
      expect(error).toMatchObject({ code: 'model.shape-unknown', message: expect.stringContaining(field) as string });
      return;
    }
    throw new Error('it was read');
  });

  it('is told for layers with a state that no formula has', () => {
    const odd = read({ ...SMALL, layer_types: ['linear_attention', 'full_attention'] });
    expect(odd.notModelled).toEqual(['the state of 1 layers without attention']);
  });
});

it('the table names where each line is from, and finds a model without its owner', () => {
  for (const name of KNOWN_MODELS) expect(findKnownModel(name)?.source).toContain('config.json of the model');
  expect(findKnownModel('kimi-k2.5')?.name).toBe('moonshotai/Kimi-K2.5');
  expect(findKnownModel('no-such-model')).toBeUndefined();
});
