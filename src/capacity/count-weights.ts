/**
 * The weights of a model in parts, each with its bytes and how engines lay it on GPUs, counted from the config. Pure.
 * Norms, biases and positions are left out: below 0.1 % of any model's weights.
 */
import { countAt, type Fields, fieldsAt, isTrueAt, listAt } from './config-fields.ts';
import type { CacheGroup, ExpertShape, WeightPart, WeightSplit } from './model-shape.ts';
import type { WeightFormat, WeightKind } from './quantisation.ts';

export interface WeightInput {
  readonly config: Fields;
  readonly text: Fields;
  readonly caches: readonly CacheGroup[];
  readonly experts: ExpertShape | undefined;
  readonly layers: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly attentionHeads: number;
  readonly vocabularySize: number;
  readonly format: WeightFormat;
}

type AddPart = (name: string, parameters: number, kind: WeightKind, split: WeightSplit, kvHeads?: number) => void;

export function countWeights(input: WeightInput): WeightPart[] {
  const { vocabularySize, hiddenSize, config, text, caches } = input;
  const parts: WeightPart[] = [];
  const add: AddPart = (name, parameters, kind, split, kvHeads = 0) => {
    const isPerLayer = kind !== 'embedding' && kind !== 'head';
    if (parameters > 0)
      parts.push({ name, parameters, bytes: (parameters * input.format.bitsOf(kind)) / 8, split, kvHeads, isPerLayer });
  };
  const isTied = isTrueAt(text, 'tie_word_embeddings') || isTrueAt(config, 'tie_word_embeddings') || isTiedByClass(text);
  add('embedding', vocabularySize * hiddenSize, 'embedding', 'attention');
  if (!isTied) add('output head', vocabularySize * hiddenSize, 'head', 'attention');
  for (const group of caches) {
    if (group.kind === 'heads') addHeads(input, group.layers, group, add);
    else if (group.kind === 'latent') addLatent(input, group.layers, group.indexerDim, add);
    else if (group.kind === 'compressed') addCompressed(input, add);
    else addState(input, group.layers, add);
  }
  addFeedForward(input, add);
  addVision(config, add);
  return parts;
}

/** Gemma ties by default and leaves the field out of its files. */
function isTiedByClass(text: Fields): boolean {
  return text['tie_word_embeddings'] === undefined && /^gemma/.test(String(text['model_type'] ?? ''));
}

function addHeads(
  input: WeightInput,
  layers: number,
  group: { kvHeads: number; keyDim: number; valueDim: number },
  add: AddPart,
): void {
  const { hiddenSize, attentionHeads, text } = input;
  const gate = isTrueAt(text, 'attn_output_gate') ? 2 : 1; // Qwen3.5 makes a gate beside the query
  const query = hiddenSize * attentionHeads * group.keyDim * gate;
  const out = attentionHeads * group.valueDim * hiddenSize;
  add('attention: query and output', layers * (query + out), 'attention', 'attention');
  add(
    'attention: keys and values',
    layers * hiddenSize * group.kvHeads * (group.keyDim + group.valueDim),
    'attention',
    'kv',
    group.kvHeads,
  );
}

function addLatent(input: WeightInput, layers: number, indexerDim: number, add: AddPart): void {
  const { hiddenSize, attentionHeads, text } = input;
  const count = (name: string) => countAt(text, name) ?? 0;
  const rank = count('kv_lora_rank');
  const [nope, rope, value, queryRank] = [
    count('qk_nope_head_dim'),
    count('qk_rope_head_dim'),
    count('v_head_dim'),
    count('q_lora_rank'),
  ];
  const down = hiddenSize * (queryRank + rank + rope);
  const queryUp = (queryRank > 0 ? queryRank : hiddenSize) * attentionHeads * (nope + rope);
  const keysUp = rank * attentionHeads * (nope + value);
  const out = attentionHeads * value * hiddenSize;
  add('latent attention: down projections', layers * down, 'attention', 'whole');
  add('latent attention: up projections and output', layers * (queryUp + keysUp + out), 'attention', 'attention');
  // Engines keep the up projection a second time, in 16 bits, for decoding in the latent space.
  add('latent attention: absorbed copy', layers * keysUp, 'router', 'attention');
  if (indexerDim > 0) {
    const heads = count('index_n_heads');
    add(
      'sparse attention: indexer',
      layers * (queryRank * heads * indexerDim + hiddenSize * (indexerDim + heads)),
      'attention',
      'whole',
    );
  }
}

/** DeepSeek-V4: one KV head, queries and output through low ranks, the output in groups. */
function addCompressed(input: WeightInput, add: AddPart): void {
  const { hiddenSize, attentionHeads, text, layers } = input;
  const count = (name: string) => countAt(text, name) ?? 0;
  const wide = attentionHeads * count('head_dim');
  const down = hiddenSize * (count('q_lora_rank') + count('head_dim'));
  const up = count('q_lora_rank') * wide + wide * count('o_lora_rank') + count('o_groups') * count('o_lora_rank') * hiddenSize;
  add('compressed attention: down projections', layers * down, 'attention', 'whole');
  add('compressed attention: up projections and output', layers * up, 'attention', 'attention');
}

function addState(input: WeightInput, layers: number, add: AddPart): void {
  const { hiddenSize, text } = input;
  const count = (name: string) => countAt(text, name) ?? 0;
  const kda = fieldsAt(text, 'linear_attn_config');
  let parameters = 0;
  if (count('linear_num_value_heads') > 0) {
    const keys = count('linear_num_key_heads') * count('linear_key_head_dim');
    const values = count('linear_num_value_heads') * count('linear_value_head_dim');
    parameters = hiddenSize * (2 * keys + 2 * values + 2 * count('linear_num_value_heads')) + values * hiddenSize;
  } else if (kda !== undefined) {
    const dim = countAt(kda, 'head_dim') ?? 0;
    const wide = (countAt(kda, 'num_heads') ?? 0) * dim;
    parameters = hiddenSize * (4 * wide + 2 * dim) + 2 * dim * wide; // q, k, v, out; two gates of low rank
  } else {
    const wide =
      (countAt(text, 'mamba_num_heads', 'mamba_n_heads') ?? 0) * (countAt(text, 'mamba_head_dim', 'mamba_d_head') ?? 0);
    const states =
      2 * (countAt(text, 'n_groups', 'mamba_n_groups') ?? 1) * (countAt(text, 'ssm_state_size', 'mamba_d_state') ?? 0);
    parameters = hiddenSize * (3 * wide + states);
  }
  add('layers with a state', layers * parameters, 'linear-attention', 'attention');
}

function addFeedForward(input: WeightInput, add: AddPart): void {
  const { hiddenSize, intermediateSize, experts, text, layers } = input;
  const matrices = text['mlp_hidden_act'] === 'relu2' ? 2 : 3; // Nemotron-H has no gate
  const denseLayers = Math.max(0, countFeedForwardLayers(text, layers) - (experts?.layers ?? 0));
  // A layer of Llama-4 without experts is as wide as `intermediate_size_mlp` says.
  const width = countAt(text, 'intermediate_size_mlp') ?? intermediateSize;
  add('dense feed-forward', denseLayers * matrices * hiddenSize * width, 'dense', 'tensor');
  if (experts === undefined) return;
  // Kimi-K3 routes in a narrower space, with a projection into it and one back.
  const inner = countAt(text, 'routed_expert_hidden_size') ?? hiddenSize;
  if (inner !== hiddenSize) add('expert projections', experts.layers * 2 * hiddenSize * inner, 'shared', 'whole');
  add('routed experts', experts.layers * experts.count * matrices * inner * experts.intermediateSize, 'experts', 'experts');
  add('routers', experts.layers * experts.count * hiddenSize, 'router', 'whole');
  const sharedWidth =
    countAt(text, 'shared_expert_intermediate_size', 'moe_shared_expert_intermediate_size', 'shared_intermediate_size') ??
    (countAt(text, 'n_shared_experts', 'num_shared_experts') ?? 0) * experts.intermediateSize;
  const isLlama4 = countAt(text, 'intermediate_size_mlp') !== undefined; // one shared expert, as wide as a routed one
  add(
    'shared experts',
    experts.layers * matrices * hiddenSize * (isLlama4 ? experts.intermediateSize : sharedWidth),
    'shared',
    'tensor',
  );
}

/** Nemotron-H has layers of one kind each: `-` and `E` are feed-forward, `M` and `*` are not. */
function countFeedForwardLayers(text: Fields, layers: number): number {
  const letters = text['hybrid_override_pattern'];
  return typeof letters === 'string' ? [...letters].filter((letter) => letter === '-' || letter === 'E').length : layers;
}

/** A tower of plain transformer layers and a projector of two; every rank holds it whole. */
function addVision(config: Fields, add: AddPart): void {
  const vision = findVision(config);
  if (vision === undefined) return;
  const { layers, hiddenSize } = vision;
  const width = countAt(vision.fields, 'intermediate_size', 'vt_intermediate_size') ?? 4 * hiddenSize;
  const merged = hiddenSize * 4; // 2 × 2 patches become one token in the families covered
  const out = countAt(vision.fields, 'out_hidden_size', 'text_hidden_size', 'projection_dim') ?? hiddenSize;
  add('vision tower', layers * (4 * hiddenSize ** 2 + 2 * hiddenSize * width) + merged ** 2 + merged * out, 'router', 'whole');
}

export function findVision(config: Fields): { layers: number; hiddenSize: number; fields: Fields } | undefined {
  const outer = fieldsAt(config, 'thinker_config') ?? config;
  const fields = fieldsAt(outer, 'vision_config');
  if (fields === undefined) return undefined;
  const layers = countAt(fields, 'depth', 'num_hidden_layers', 'vt_num_hidden_layers', 'num_layers');
  const hiddenSize = countAt(fields, 'hidden_size', 'vt_hidden_size', 'embed_dim', 'width');
  return layers === undefined || hiddenSize === undefined ? undefined : { layers, hiddenSize, fields };
}

/** Layers with routed experts: all but the first dense ones, by step, by list, or by letter. */
export function countExpertLayers(text: Fields, layers: number): number {
  const letters = text['hybrid_override_pattern'];
  if (typeof letters === 'string') return [...letters].filter((letter) => letter === 'E').length;
  const types = listAt(text, 'mlp_layer_types');
  if (types.length >= layers) return types.slice(0, layers).filter((type) => type === 'sparse').length;
  const bits = listAt(text, 'moe_layer_freq');
  if (bits.length >= layers) return bits.slice(0, layers).filter((bit) => bit === 1).length;
  const written = listAt(text, 'moe_layers');
  if (written.length > 0) return written.length;
  const step = countAt(text, 'decoder_sparse_step', 'moe_layer_freq', 'interleave_moe_layer_step', 'moe_layer_step') || 1;
  const dense = countAt(text, 'first_k_dense_replace', 'num_dense_layers') ?? listAt(text, 'mlp_only_layers').length;
  return Math.max(0, Math.ceil((layers - dense) / step));
}
