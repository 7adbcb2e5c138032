/**
 * A model's own `config.json` (parsed, and of any origin) → its shape. Pure.
 * Promises: every number comes from the config, none from the model's name; a field that decides memory and is missing is an
 * error that names it; what no formula covers is named in `notModelled`.
 */
import { countAt, type Fields, fieldsAt, listAt, missingField, needCount, textAt } from './config-fields.ts';
import { countExpertLayers, countWeights, findVision } from './count-weights.ts';
import type { ExpertShape, ModelShape, VisionShape, WeightPart } from './model-shape.ts';
import { readWeightFormat, type SampleLayers } from './quantisation.ts';
import { type LayerKind, readCaches } from './read-caches.ts';

export interface ModelConfigInput {
  /** As the person named it. */
  readonly name: string;
  readonly config: Fields;
  /** `hf_quant_config.json` of a ModelOpt checkpoint. */
  readonly hfQuantConfig?: Fields;
  /** `metadata.total_size` of the safetensors index, or the sum of the files: bytes. */
  readonly checkpointBytes?: number;
  /** Where the config is from, for `sources`. */
  readonly source: string;
}

export function readModelConfig(input: ModelConfigInput): ModelShape {
  const { name, config } = input;
  const written = { ...topLevel(config), ...findTextConfig(config) };
  const text = { ...CLASS_DEFAULTS[textAt(written, 'model_type')], ...written };
  const layers = needCount(text, name, ...LAYER_NAMES);
  if (layers > MOST_LAYERS) throw missingField(name, [`num_hidden_layers of at most ${MOST_LAYERS}`]);
  const hiddenSize = needCount(text, name, 'hidden_size', 'n_embd', 'd_model');
  const experts = readExperts(text, name, layers);
  const intermediateSize = readWidth(text, name, experts);
  const attentionHeads = needCount(text, name, 'num_attention_heads', 'n_head', 'n_heads');
  const vocabularySize = needCount(text, name, 'vocab_size', 'padded_vocab_size');
  const { groups, kinds, notModelled } = readCaches(text, name, layers);
  const format = readWeightFormat({
    config,
    text,
    ...(input.hfQuantConfig === undefined ? {} : { hfQuantConfig: input.hfQuantConfig }),
    samples: chooseSamples(text, kinds, layers),
    hasExperts: experts !== undefined,
  });
  const sizes = {
    config,
    text,
    caches: groups,
    experts,
    layers,
    hiddenSize,
    intermediateSize,
    attentionHeads,
    vocabularySize,
    format,
  };
  const counted = countWeights(sizes);
  const fitted = fitToCheckpoint(counted, input.checkpointBytes ?? 0);
  const vision = findVision(config);
  return {
    name,
    architecture: String(listAt(config, 'architectures')[0] ?? ''),
    modelType: textAt(config, 'model_type') || textAt(text, 'model_type'),
    layers,
    hiddenSize,
    intermediateSize,
    attentionHeads,
    vocabularySize,
    contextTokens: readContext(text, config),
    computeType: readComputeType(text, config),
    caches: groups,
    ...(experts === undefined ? {} : { experts }),
    ...(vision === undefined ? {} : { vision: visionShape(vision) }),
    draftLayers: countAt(text, 'num_nextn_predict_layers', 'mtp_num_hidden_layers', 'num_mtp_modules') ?? 0,
    weights: fitted.parts,
    quantisation: format.note,
    sources: [input.source, fitted.source],
    notModelled: [...notModelled, ...format.notModelled, ...otherTowers(config)],
  };
}

/** Fields that files of a model type leave out, and what its published configuration class takes then. */
const CLASS_DEFAULTS: Readonly<Record<string, Fields>> = {
  gemma3_text: {
    num_attention_heads: 8,
    num_key_value_heads: 4,
    head_dim: 256,
    vocab_size: 262_208,
    max_position_embeddings: 131_072,
  },
  qwen3_next: { attn_output_gate: true }, // its attention has the gate without a field for it
};

const LAYER_NAMES = ['num_hidden_layers', 'n_layer', 'n_layers', 'num_layers'] as const;
/** Ten times the deepest model there is. */
const MOST_LAYERS = 2000;

const NESTED = ['text_config', 'llm_config', 'language_config', 'language_model_config'] as const;

/** Multimodal models keep the language model's fields in a part of their own; Qwen's Omni models two parts deep. */
function findTextConfig(config: Fields): Fields {
  const outer = fieldsAt(config, 'thinker_config') ?? config;
  for (const name of NESTED) {
    const nested = fieldsAt(outer, name);
    if (nested !== undefined) return nested;
  }
  return outer === config ? {} : outer;
}

function topLevel(config: Fields): Fields {
  return Object.fromEntries(
    Object.entries(config).filter(
      ([, value]) => !(typeof value === 'object' && value !== null && !Array.isArray(value)) || isOwnPart(value),
    ),
  );
}

function isOwnPart(value: object): boolean {
  return 'full_attn_layers' in value || 'quant_method' in value;
}

function readExperts(text: Fields, name: string, layers: number): ExpertShape | undefined {
  const count = countAt(text, 'n_routed_experts', 'num_experts', 'num_local_experts', 'moe_num_experts') ?? 0;
  if (count === 0) return undefined;
  const perToken = needCount(
    text,
    name,
    'num_experts_per_tok',
    'num_experts_per_token',
    'experts_per_token',
    'moe_topk',
    'moe_top_k',
    'top_k_experts',
  );
  const width = needCount(
    text,
    name,
    'moe_intermediate_size',
    'expert_intermediate_size',
    'moe_ffn_hidden_size',
    'intermediate_size',
  );
  const expertLayers = countExpertLayers(text, layers);
  return { count, perToken, intermediateSize: width, layers: expertLayers };
}

function readWidth(text: Fields, name: string, experts: ExpertShape | undefined): number {
  const width = countAt(text, 'intermediate_size', 'ffn_hidden_size', 'n_inner');
  if (width !== undefined && width > 0) return width;
  return experts === undefined ? needCount(text, name, 'intermediate_size') : experts.intermediateSize;
}

/** Engines take the longest context that the config allows, with its rope scaling; YaRN models write the product themselves. */
function readContext(text: Fields, config: Fields): number {
  return (
    countAt(text, 'max_position_embeddings', 'max_sequence_length', 'seq_length', 'model_max_length') ??
    countAt(config, 'max_position_embeddings') ??
    0
  );
}

/** A layer in the middle of each kind: what is left unquantised is often the first layers alone. */
function chooseSamples(text: Fields, kinds: readonly LayerKind[], layers: number): SampleLayers {
  const firstExperts = countAt(text, 'first_k_dense_replace', 'num_dense_layers') ?? 0;
  const middle = Math.max(Math.floor(layers / 2), firstExperts);
  const from = (isOne: (kind: LayerKind) => boolean) => {
    const at = kinds.findIndex((kind, layer) => layer >= middle && isOne(kind));
    return at === -1 ? middle : at;
  };
  return {
    attention: from((kind) => kind === 'full' || kind === 'sliding'),
    state: from((kind) => kind === 'state'),
    dense: firstExperts > 0 ? 0 : middle,
    experts: middle,
  };
}

function visionShape({ layers, hiddenSize, fields }: { layers: number; hiddenSize: number; fields: Fields }): VisionShape {
  return { layers, hiddenSize, listedLayers: countAt(fields, 'num_hidden_layers', 'vt_num_hidden_layers') ?? 24 };
}

function readComputeType(text: Fields, config: Fields): ModelShape['computeType'] {
  const written =
    textAt(text, 'dtype') || textAt(text, 'torch_dtype') || textAt(config, 'torch_dtype') || textAt(config, 'dtype');
  if (written === 'float16' || written === 'half') return 'f16';
  return written === 'float32' ? 'f32' : 'bf16'; // left out: bf16, as nearly all checkpoints are
}

function otherTowers(config: Fields): string[] {
  const outer = fieldsAt(config, 'thinker_config') ?? config;
  const parts = ['audio_config', 'talker_config', 'code2wav_config', 'speech_config'];
  return parts
    .filter((part) => fieldsAt(outer, part) ?? fieldsAt(config, part))
    .map((part) => `the weights of ${part.replace('_config', '')}`);
}

/** Two copies are no part of a checkpoint: the absorbed one is made at load. */
const MADE_AT_LOAD = 'latent attention: absorbed copy';
/** Beyond this the size on disk is of something else (other precision, several copies), and the count is kept. */
const LARGEST_MISS = 0.25;

/** What a checkpoint holds beyond the count (norms, scales, biases) is spread over its parts in proportion. */
function fitToCheckpoint(
  parts: readonly WeightPart[],
  checkpointBytes: number,
): { parts: readonly WeightPart[]; source: string } {
  const counted = parts.reduce((sum, part) => sum + (part.name === MADE_AT_LOAD ? 0 : part.bytes), 0);
  if (checkpointBytes === 0 || counted === 0) return { parts, source: 'weights counted from the config' };
  const ratio = checkpointBytes / counted;
  if (Math.abs(ratio - 1) > LARGEST_MISS)
    return { parts, source: `weights counted from the config (the files have ${ratio.toFixed(2)} times as many bytes)` };
  const scaled = parts.map((part) => (part.name === MADE_AT_LOAD ? part : { ...part, bytes: part.bytes * ratio }));
  return { parts: scaled, source: 'weights by the size of the checkpoint' };
}
