/**
 * What each layer of a model stores per token, read from its config. Pure.
 * Layers are told apart by the fields that models themselves carry: `kv_lora_rank` (MLA), `layer_types`,
 * `full_attention_interval`, `sliding_window_pattern`, `attn_type_list`, `hybrid_override_pattern`, `linear_attn_config`.
 */
import { countAt, type Fields, fieldsAt, isTrueAt, listAt, needCount, textAt } from './config-fields.ts';
import type { CacheGroup, CompressedCache, HeadCache, StateCache } from './model-shape.ts';

export interface Caches {
  readonly groups: readonly CacheGroup[];
  readonly kinds: readonly LayerKind[];
  readonly notModelled: readonly string[];
}

export type LayerKind = 'full' | 'sliding' | 'state' | 'none';

export function readCaches(text: Fields, model: string, layers: number): Caches {
  const ratios = listAt(text, 'compress_ratios');
  if (ratios.length > 0) return { groups: [compressedGroup(text, model, ratios)], kinds: [], notModelled: [] };
  const kinds = readLayerKinds(text, layers);
  const count = (kind: LayerKind) => kinds.filter((one) => one === kind).length;
  const groups: CacheGroup[] = [];
  const notModelled: string[] = [];
  if (count('full') > 0) groups.push(attentionGroup(text, model, count('full')));
  if (count('sliding') > 0) groups.push(slidingGroup(text, model, count('sliding')));
  if (count('state') > 0) {
    const state = readState(text, count('state'));
    if (state === undefined) notModelled.push(`the state of ${count('state')} layers without attention`);
    else groups.push(state);
  }
  return { groups, kinds, notModelled };
}

function compressedGroup(text: Fields, model: string, ratios: readonly unknown[]): CompressedCache {
  const rope = needCount(text, model, 'qk_rope_head_dim');
  return {
    kind: 'compressed',
    layers: ratios.length,
    layersOf4: ratios.filter((ratio) => ratio === 4).length,
    layersOf128: ratios.filter((ratio) => ratio === 128).length,
    nope: needCount(text, model, 'head_dim') - rope,
    rope,
    indexerDim: needCount(text, model, 'index_head_dim'),
    window: needCount(text, model, 'sliding_window'),
  };
}

function attentionGroup(text: Fields, model: string, layers: number): CacheGroup {
  const rank = countAt(text, 'kv_lora_rank') ?? 0;
  if (rank === 0) return { kind: 'heads', layers, window: 0, ...readHeads(text, model) };
  const isSparse = (countAt(text, 'index_topk') ?? 0) > 0;
  const indexerDim = isSparse ? needCount(text, model, 'index_head_dim') : 0;
  return { kind: 'latent', layers, rank, rope: needCount(text, model, 'qk_rope_head_dim'), indexerDim };
}

/** Sliding layers may have heads of their own (MiMo-V2: `swa_…`; Gemma-4: the full ones have `global_head_dim`). */
function slidingGroup(text: Fields, model: string, layers: number): HeadCache {
  const own = readHeads(text, model);
  const keyDim = countAt(text, 'swa_head_dim') ?? countAt(text, 'head_dim') ?? own.keyDim;
  return {
    kind: 'heads',
    layers,
    kvHeads: countAt(text, 'swa_num_key_value_heads', 'num_key_value_heads') ?? own.kvHeads,
    keyDim,
    valueDim: countAt(text, 'swa_v_head_dim') ?? (countAt(text, 'swa_head_dim') === undefined ? keyDim : own.valueDim),
    window: windowOf(text),
  };
}

export function readHeads(text: Fields, model: string): { kvHeads: number; keyDim: number; valueDim: number } {
  const heads = needCount(text, model, 'num_attention_heads', 'n_head', 'n_heads');
  const written = countAt(text, 'global_head_dim', 'head_dim', 'attention_head_dim');
  const keyDim = written !== undefined && written > 0 ? written : Math.floor(needCount(text, model, 'hidden_size') / heads);
  const kvHeads = countAt(text, 'num_global_key_value_heads', 'num_key_value_heads', 'num_kv_heads') || heads;
  return { kvHeads, keyDim, valueDim: countAt(text, 'v_head_dim') || keyDim };
}

export function windowOf(text: Fields): number {
  return countAt(text, 'sliding_window', 'attention_chunk_size', 'sliding_window_size') ?? 0;
}

export function readLayerKinds(text: Fields, layers: number): LayerKind[] {
  const all = (kindOf: (layer: number) => LayerKind) => Array.from({ length: layers }, (_, layer) => kindOf(layer));
  const types = listAt(text, 'layer_types');
  if (types.length >= layers) return types.slice(0, layers).map(kindOfType);
  const letters = textAt(text, 'hybrid_override_pattern');
  if (letters.length >= layers)
    return [...letters.slice(0, layers)].map((letter) => ({ '*': 'full', M: 'state' })[letter] ?? 'none') as LayerKind[];
  const bits = listAt(text, 'hybrid_layer_pattern'); // MiMo-V2: 1 = sliding
  if (bits.length >= layers) return bits.slice(0, layers).map((bit) => (bit === 1 ? 'sliding' : 'full'));
  const attention = listAt(text, 'attn_type_list'); // MiniMax: 1 = full, 0 = linear
  if (attention.length >= layers) return attention.slice(0, layers).map((type) => (type === 1 ? 'full' : 'state'));
  const linear = fieldsAt(text, 'linear_attn_config'); // Kimi-Linear: layers counted from 1
  if (linear !== undefined) {
    const full = new Set(listAt(linear, 'full_attn_layers'));
    return all((layer) => (full.has(layer + 1) ? 'full' : 'state'));
  }
  const interval = countAt(text, 'full_attention_interval') ?? 0; // Qwen3-Next: each fourth is full
  if (interval > 0) return all((layer) => ((layer + 1) % interval === 0 ? 'full' : 'state'));
  return all(slidingRule(text));
}

/** Models without a list of layers, with a window: which of their layers slide. */
function slidingRule(text: Fields): (layer: number) => LayerKind {
  const window = windowOf(text);
  const isOff = text['use_sliding_window'] === false || window === 0;
  const pattern = countAt(text, 'sliding_window_pattern') ?? 0; // Gemma-3: each n-th is full
  const type = textAt(text, 'model_type');
  if (isOff) return () => 'full';
  if (pattern > 0) return (layer) => ((layer + 1) % pattern === 0 ? 'full' : 'sliding');
  // The classes of these two have the pattern as a default and leave it out of the file.
  if (type === 'gemma2') return (layer) => (layer % 2 === 0 ? 'sliding' : 'full');
  if (type === 'gemma3_text') return (layer) => ((layer + 1) % 6 === 0 ? 'full' : 'sliding');
  if (countAt(text, 'attention_chunk_size') !== undefined) return (layer) => ((layer + 1) % 4 === 0 ? 'full' : 'sliding'); // Llama-4
  return isTrueAt(text, 'use_sliding_window') || type === 'mistral' ? () => 'sliding' : () => 'full';
}

function kindOfType(type: unknown): LayerKind {
  switch (type) {
    case 'sliding_attention':
    case 'chunked_attention':
    case 'local_attention':
      return 'sliding';
    case 'linear_attention':
    case 'mamba':
    case 'mamba2':
    case 'recurrent':
      return 'state';
    case 'mlp':
    case 'moe':
      return 'none';
    default:
      return 'full';
  }
}

/** Gated delta nets (Qwen3-Next, Qwen3.5), KDA (Kimi-Linear), Mamba 2 (Nemotron-H, Falcon-H1). */
function readState(text: Fields, layers: number): StateCache | undefined {
  const valueHeads = countAt(text, 'linear_num_value_heads');
  if (valueHeads !== undefined) {
    const keys = (countAt(text, 'linear_num_key_heads') ?? 0) * (countAt(text, 'linear_key_head_dim') ?? 0);
    const values = valueHeads * (countAt(text, 'linear_value_head_dim') ?? 0);
    const kernel = countAt(text, 'linear_conv_kernel_dim') ?? 4;
    const convElements = (kernel - 1) * (2 * keys + values);
    return { kind: 'state', layers, convElements, recurrentElements: values * (countAt(text, 'linear_key_head_dim') ?? 0) };
  }
  const kda = fieldsAt(text, 'linear_attn_config');
  if (kda !== undefined) {
    const wide = (countAt(kda, 'num_heads') ?? 0) * (countAt(kda, 'head_dim') ?? 0);
    const kernel = countAt(kda, 'short_conv_kernel_size') ?? 4;
    return {
      kind: 'state',
      layers,
      convElements: (kernel - 1) * 3 * wide,
      recurrentElements: wide * (countAt(kda, 'head_dim') ?? 0),
    };
  }
  const heads = countAt(text, 'mamba_num_heads', 'mamba_n_heads');
  const stateSize = countAt(text, 'ssm_state_size', 'mamba_d_state');
  if (heads === undefined || stateSize === undefined) return undefined;
  const wide = heads * (countAt(text, 'mamba_head_dim', 'mamba_d_head') ?? 0);
  const groups = countAt(text, 'n_groups', 'mamba_n_groups') ?? 1;
  const kernel = countAt(text, 'conv_kernel', 'mamba_d_conv') ?? 4;
  return {
    kind: 'state',
    layers,
    convElements: (kernel - 1) * (wide + 2 * groups * stateSize),
    recurrentElements: wide * stateSize,
  };
}
