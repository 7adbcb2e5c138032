/** Every spelling and every `auto`: what the KV cache really becomes. */
import { describe, expect, it } from 'vitest';
import { countBits } from '../base/element-type.ts';
import type { CacheGroup } from './model-shape.ts';
import { type KvTypeQuestion, resolveKvType } from './resolve-kv-type.ts';

const LATENT: CacheGroup = { kind: 'latent', layers: 61, rank: 512, rope: 64, indexerDim: 0 };
const SPARSE: CacheGroup = { ...LATENT, indexerDim: 128 };
const PLAIN = { method: '', weightBits: 16, kvCacheAlgorithm: '', hasKvCacheScheme: false };
const [HOPPER, BLACKWELL, RTX] = [9, 10, 12];

interface Case {
  engine?: 'sglang' | 'vllm';
  version?: string;
  asked?: string;
  quantisation?: Partial<typeof PLAIN>;
  caches?: readonly CacheGroup[];
  modelType?: string;
  compute?: string;
  computeType?: 'bf16' | 'f16' | 'f32';
  gpu?: number;
  backend?: string;
  dcp?: number;
}

function ask(one: Case) {
  const question: KvTypeQuestion = {
    engine: one.engine ?? 'sglang',
    version: one.version ?? '0.5.8',
    asked: one.asked ?? 'auto',
    computeTypeAsked: one.compute ?? '',
    shape: {
      caches: one.caches ?? [LATENT],
      quantisation: { ...PLAIN, ...one.quantisation },
      modelType: one.modelType ?? 'deepseek_v3',
      computeType: one.computeType ?? 'bf16',
    },
    computeCapability: one.gpu ?? RTX,
    attentionBackend: one.backend ?? '',
    dcp: one.dcp ?? 1,
  };
  return resolveKvType(question);
}

describe('SGLang, spellings', () => {
  it.each([
    ['0.5.8', 'bf16', 'bf16', 16],
    ['0.5.8', 'bfloat16', 'bf16', 16],
    ['0.5.8', 'BF16', 'bf16', 16],
    ['0.5.8', 'fp8_e4m3', 'fp8_e4m3', 8],
    ['0.5.8', 'fp8_e5m2', 'fp8_e5m2', 8],
    ['0.5.8', 'fp4_e2m1', 'fp4', 4],
    ['0.5.18', 'nvfp4', 'nvfp4', 4],
    ['0.5.18', 'mxfp8', 'mxfp8', 8],
    ['0.5.18', 'fp4_mx_block16', 'fp4', 4],
    ['0.4.6.post5', 'fp8_e4m3', 'fp8_e4m3', 8],
    ['', 'bf16', 'bf16', 16],
  ])('%s takes %s as %s, %s bits', (version, asked, type, bits) => {
    expect(ask({ version, asked })).toMatchObject({ type, bits, isOverridden: false, refusal: '' });
  });

  it.each([
    ['0.5.2', 'bf16'],
    ['0.5.3', 'bfloat16'],
    ['0.4.10', 'bf16'],
    ['0.5.4', 'fp4_e2m1'],
    ['0.5.18', 'fp4_e2m1'],
    ['0.5.17', 'mxfp8'],
    ['0.5.8', 'fp8'],
    ['0.5.8', 'turbo'],
  ])('%s refuses %s', (version, asked) => {
    expect(ask({ version, asked }).refusal).toContain(asked);
  });
});

describe('SGLang, auto', () => {
  const modelopt = { kvCacheAlgorithm: 'FP8' };
  it.each<[string, Case, string]>([
    ['the type of the model', {}, 'bf16'],
    ['the type of a half-precision model', { computeType: 'f16' }, 'f16'],
    ['the type that --dtype says', { compute: 'half' }, 'f16'],
    ['16 bits for a 32-bit checkpoint', { computeType: 'f32' }, 'bf16'],
    ['FP8 where the checkpoint says so', { quantisation: modelopt }, 'fp8_e4m3'],
    [
      'FP8 where the checkpoint says so in small letters',
      { quantisation: { kvCacheAlgorithm: 'fp8' }, version: '0.5.3' },
      'fp8_e4m3',
    ],
    ['not FP8 before 0.5.3', { quantisation: modelopt, version: '0.5.2' }, 'bf16'],
    [
      'not FP8 for a scheme of compressed-tensors',
      { quantisation: { method: 'compressed-tensors', hasKvCacheScheme: true } },
      'bf16',
    ],
    ['FP8 for sparse attention on compute capability 10', { caches: [SPARSE], gpu: BLACKWELL }, 'fp8_e4m3'],
    ['FP8 for sparse attention on 12', { caches: [SPARSE], gpu: RTX, version: '0.5.5' }, 'fp8_e4m3'],
    ['16 bits for sparse attention on Hopper', { caches: [SPARSE], gpu: HOPPER }, 'bf16'],
    ['FP8 for DeepSeek-V4 since 0.5.12', { modelType: 'deepseek_v4', version: '0.5.12', gpu: HOPPER }, 'fp8_e4m3'],
    ['16 bits for DeepSeek-V4 before', { modelType: 'deepseek_v4', version: '0.5.11', gpu: HOPPER }, 'bf16'],
  ])('%s', (_, one, type) => {
    expect(ask(one)).toMatchObject({ asked: 'auto', type, refusal: '' });
  });
});

describe('SGLang, over an explicit flag', () => {
  it('0.5.3 and 0.5.4 set FP8 for sparse attention on Blackwell', () => {
    const one = { caches: [SPARSE], asked: 'bf16', version: '0.5.4' };
    expect(ask({ ...one, gpu: BLACKWELL })).toMatchObject({ type: 'fp8_e4m3', bits: 8, isOverridden: true });
    expect(ask({ ...one, gpu: HOPPER })).toMatchObject({ type: 'bf16', isOverridden: false });
    expect(ask({ ...one, gpu: BLACKWELL, version: '0.5.5' })).toMatchObject({ type: 'bf16', isOverridden: false });
  });

  it('Kimi-K3 with decode context parallelism on tokenspeed_mla takes FP8', () => {
    const one = { modelType: 'kimi_k3', dcp: 8, backend: 'tokenspeed_mla', version: '0.5.18' };
    expect(ask(one)).toMatchObject({ type: 'fp8_e4m3', bits: 8 });
    expect(ask({ ...one, asked: 'fp8_e4m3' })).toMatchObject({ type: 'fp8_e4m3', isOverridden: false });
    expect(ask({ ...one, asked: 'bf16', backend: 'flashinfer' })).toMatchObject({ type: 'bf16' });
  });

  it('backends refuse types they have no kernel for', () => {
    expect(ask({ backend: 'tokenspeed_mla', asked: 'bf16', version: '0.5.15' }).refusal).toContain('tokenspeed_mla');
    expect(ask({ backend: 'trtllm_mla', asked: 'bfloat16' }).refusal).toContain('bf16');
    expect(ask({ caches: [SPARSE], asked: 'fp8_e5m2' }).refusal).toContain('sparse');
    expect(ask({ backend: 'fa3', asked: 'fp8_e5m2', gpu: HOPPER })).toMatchObject({ type: 'fp8_e5m2', refusal: '' });
  });
});

describe('vLLM', () => {
  const vllm = (one: Case) => ask({ engine: 'vllm', version: '0.16.0', ...one });
  const scheme = { method: 'compressed-tensors', hasKvCacheScheme: true };
  it.each<[string, Case, string]>([
    ['auto is the type of the model', {}, 'bf16'],
    ['fp8 is e4m3', { asked: 'fp8' }, 'fp8_e4m3'],
    ['fp8_e5m2', { asked: 'fp8_e5m2' }, 'fp8_e5m2'],
    ['bfloat16', { asked: 'bfloat16' }, 'bf16'],
    ['float16', { asked: 'float16' }, 'f16'],
    ['auto with a ModelOpt algorithm', { quantisation: { kvCacheAlgorithm: 'FP8', method: 'NVFP4' } }, 'fp8_e4m3'],
    ['auto with a scheme', { quantisation: scheme }, 'fp8_e4m3'],
    ['a scheme wins over the flag up to 0.16', { quantisation: scheme, asked: 'bfloat16' }, 'fp8_e4m3'],
    ['and no longer after it', { quantisation: scheme, asked: 'bfloat16', version: '0.21.0' }, 'bf16'],
    ['sparse attention keeps its own layout', { caches: [SPARSE], asked: 'fp8' }, 'fp8_ds_mla'],
    ['sparse attention takes bfloat16 as auto', { caches: [SPARSE], asked: 'bfloat16' }, 'bf16'],
  ])('%s', (_, one, type) => {
    expect(vllm(one)).toMatchObject({ type, refusal: '' });
  });

  it('says when the flag does not win, and when it knows nothing of a type', () => {
    expect(vllm({ quantisation: scheme, asked: 'bfloat16' })).toMatchObject({ isOverridden: true, bits: 8 });
    expect(vllm({ asked: 'turbo' }).refusal).toContain('turbo');
  });
});

it('gives every type the bits that policy knows it by, less the scales', () => {
  for (const asked of ['bf16', 'fp8_e4m3', 'fp8_e5m2']) expect(ask({ asked }).bits).toBe(countBits(asked));
  expect(ask({ asked: 'nvfp4', version: '0.5.18' })).toMatchObject({ bits: 4, scaleBytesPerElement: 1 / 16 });
});
