/**
 * Which type the KV cache of a launch will really have: flag + version + what the checkpoint and the GPU make of it. Pure.
 * Engines override silently: `auto` becomes FP8 for some checkpoints and models, and some versions even turn an explicit 16 bits
 * into 8. One rule a line, in the order in which the engine applies them; each says since when and what shows it.
 */
import { countBits } from '../base/element-type.ts';
import { isAtLeast } from '../engine/version.ts';
import type { PlannedEngine } from './engine-launch.ts';
import type { ResolvedKvType } from './kv-type.ts';
import type { ModelShape } from './model-shape.ts';

export interface KvTypeQuestion {
  readonly engine: PlannedEngine;
  readonly version: string;
  /** The flag as written; `auto` where it is not. */
  readonly asked: string;
  /** `--dtype` as written; '' or `auto` for the model's own. */
  readonly computeTypeAsked: string;
  readonly shape: Pick<ModelShape, 'caches' | 'quantisation' | 'modelType' | 'computeType'>;
  /** 0 = not known, or not of CUDA. */
  readonly computeCapability: number;
  readonly attentionBackend: string;
  readonly dcp: number;
}

export function resolveKvType(question: KvTypeQuestion): ResolvedKvType {
  const asked = question.asked.trim().toLowerCase() || 'auto';
  const plain = { ...question, asked };
  return plain.engine === 'sglang' ? resolveSglang(plain) : resolveVllm(plain);
}

/** Versions that are not to be read count as the newest. */
function from(question: KvTypeQuestion, ...least: [number, number, number]): boolean {
  return isAtLeast(question.version, least) ?? true;
}

function resolveSglang(question: KvTypeQuestion): ResolvedKvType {
  const { asked, shape, computeCapability } = question;
  const refusal = refuseSglang(question);
  if (refusal !== '') return answer(question, computeTypeOf(question), '', refusal);
  const isDsa = hasIndexer(question);
  const isBlackwell = computeCapability >= 10;
  if (
    shape.modelType === 'kimi_k3' &&
    question.dcp > 1 &&
    question.attentionBackend === 'tokenspeed_mla' &&
    from(question, 0, 5, 18)
  )
    return answer(
      question,
      'fp8_e4m3',
      'Kimi-K3 with decode context parallelism on tokenspeed_mla takes FP8, whatever the flag says (0.5.18)',
    );
  if (isDsa && isBlackwell && from(question, 0, 5, 3) && !from(question, 0, 5, 5))
    return answer(
      question,
      'fp8_e4m3',
      'SGLang 0.5.3 and 0.5.4 set FP8 for sparse-attention models on this GPU, whatever the flag says',
    );
  if (asked !== 'auto') return answer(question, nameOf(asked, question), 'as the flag says');
  if (shape.modelType === 'deepseek_v4' && from(question, 0, 5, 12))
    return answer(question, 'fp8_e4m3', 'auto is FP8 for DeepSeek-V4 (since 0.5.12)');
  if (isDsa && isBlackwell && from(question, 0, 5, 5))
    return answer(
      question,
      'fp8_e4m3',
      'auto is FP8 for sparse-attention models on compute capability 10 and later (since 0.5.5)',
    );
  if (shape.quantisation.kvCacheAlgorithm.toUpperCase() === 'FP8' && from(question, 0, 5, 3))
    return answer(question, 'fp8_e4m3', 'auto is FP8, silently: the checkpoint says kv_cache_quant_algo FP8 (since 0.5.3)');
  return answer(question, computeTypeOf(question), 'auto is the type the model computes in');
}

/** What argparse, or a check behind it, does not take. */
function refuseSglang(question: KvTypeQuestion): string {
  const { asked, attentionBackend } = question;
  const choices = ['auto', 'fp8_e5m2', 'fp8_e4m3'];
  if (from(question, 0, 5, 4)) choices.push('bf16', 'bfloat16');
  if (from(question, 0, 5, 5) && !from(question, 0, 5, 18)) choices.push('fp4_e2m1');
  if (from(question, 0, 5, 18)) choices.push('mxfp8', 'nvfp4', 'fp4_mx_block16');
  if (!choices.includes(asked))
    return `SGLang ${question.version} does not know --kv-cache-dtype ${asked.slice(0, 40)}; it knows ${choices.join(', ')}`;
  if (attentionBackend === 'tokenspeed_mla' && asked !== 'fp8_e4m3' && asked !== 'auto')
    return `the backend tokenspeed_mla takes fp8_e4m3 alone, and the flag says ${asked}`;
  if (attentionBackend === 'trtllm_mla' && (asked === 'bfloat16' || asked === 'fp8_e5m2'))
    return `the backend trtllm_mla does not know the spelling ${asked}; write bf16 or fp8_e4m3`;
  if (hasIndexer(question) && from(question, 0, 5, 5) && !['auto', 'bf16', 'bfloat16', 'fp8_e4m3'].includes(asked))
    return `sparse-attention models take bf16 or fp8_e4m3, and the flag says ${asked}`;
  return '';
}

function resolveVllm(question: KvTypeQuestion): ResolvedKvType {
  const { asked, shape } = question;
  const { kvCacheAlgorithm, hasKvCacheScheme, method } = shape.quantisation;
  const isModelOpt = kvCacheAlgorithm.toUpperCase() === 'FP8';
  const isScheme = hasKvCacheScheme && !isModelOpt;
  const isDsa = hasIndexer(question);
  const sixteen = ['bfloat16', 'bf16', 'float16', 'half'].includes(asked);
  // v0.10 to v0.16 take the checkpoint's scheme in the attention layer, over any flag.
  if (isScheme && method === 'compressed-tensors' && asked !== 'auto' && !from(question, 0, 17, 0))
    return answer(question, 'fp8_e4m3', 'the checkpoint has a kv_cache_scheme, and vLLM up to 0.16 lets it win over the flag');
  if (isDsa && asked.startsWith('fp8'))
    return answer(question, 'fp8_ds_mla', 'FP8 for sparse attention keeps 656 bytes for each token and layer');
  if (sixteen) return answer(question, isDsa ? computeTypeOf(question) : nameOf(asked, question), 'as the flag says');
  if (asked !== 'auto') {
    const name = nameOf(asked, question);
    if (countBits(name) === undefined)
      return answer(question, computeTypeOf(question), '', `nothing is known of the KV type ${asked.slice(0, 40)}`);
    return answer(question, name, 'as the flag says');
  }
  if (isModelOpt) return answer(question, 'fp8_e4m3', 'auto is FP8: the checkpoint says kv_cache_quant_algo FP8');
  if (isScheme) return answer(question, 'fp8_e4m3', 'auto is FP8: the checkpoint has a kv_cache_scheme');
  return answer(question, computeTypeOf(question), 'auto is the type the model computes in');
}

function hasIndexer({ shape }: KvTypeQuestion): boolean {
  return shape.caches.some((group) => group.kind === 'latent' && group.indexerDim > 0);
}

/** Both engines compute a 32-bit checkpoint in 16 bits unless told otherwise. */
function computeTypeOf({ computeTypeAsked, shape }: KvTypeQuestion): string {
  const asked = computeTypeAsked.toLowerCase();
  if (['bfloat16', 'bf16'].includes(asked)) return 'bf16';
  if (['float16', 'half', 'fp16'].includes(asked)) return 'f16';
  if (['float32', 'float'].includes(asked)) return 'f32';
  return shape.computeType === 'f16' ? 'f16' : 'bf16';
}

/** One name for each type, whatever the spelling. */
function nameOf(asked: string, question: KvTypeQuestion): string {
  switch (asked) {
    case 'bfloat16':
    case 'bf16':
      return 'bf16';
    case 'float16':
    case 'half':
      return 'f16';
    case 'fp8':
    case 'fp8_e4m3':
      return 'fp8_e4m3';
    case 'fp4_e2m1':
    case 'fp4_mx_block16':
      return 'fp4';
    case 'mxfp8':
    case 'nvfp4':
    case 'fp8_e5m2':
      return asked;
    default:
      return asked === 'auto' ? computeTypeOf(question) : asked;
  }
}

/** Types that keep scales in the pool: one byte for each block of elements. The rest take their scales from the weights. */
const SCALED_BLOCK: Readonly<Record<string, number>> = { fp4: 16, nvfp4: 16, mxfp8: 32 };
/** Elements alone; the scales are counted beside them. */
const ELEMENT_BITS: Readonly<Record<string, number>> = { fp4: 4, nvfp4: 4, mxfp8: 8, fp8_ds_mla: 8 };

function answer(question: KvTypeQuestion, type: string, because: string, refusal = ''): ResolvedKvType {
  const bits = ELEMENT_BITS[type] ?? countBits(type) ?? 16;
  const asked = question.asked;
  const meant = asked === 'auto' ? type : nameOf(asked, question);
  const isOverridden = refusal === '' && asked !== 'auto' && meant !== type && type !== 'fp8_ds_mla';
  const block = SCALED_BLOCK[type];
  return { asked, type, bits, scaleBytesPerElement: block === undefined ? 0 : 1 / block, isOverridden, because, refusal };
}
