/**
 * How a checkpoint's weights are quantised: bits per element for each kind of layer, from `quantization_config`
 * (compressed-tensors, AWQ, GPTQ, AutoRound, FP8 blocks, ModelOpt, MXFP4) or ModelOpt's `hf_quant_config.json`. Pure.
 * Promises: patterns of a config are matched in linear time (they are never run as regular expressions); a method that is
 * not known is named in `notModelled`, and its weights count as 16 bits.
 */
import { countAt, type Fields, fieldsAt, isFields, listAt, textAt } from './config-fields.ts';
import type { QuantisationNote } from './model-shape.ts';

/** Layers that checkpoints treat alike, each by the name of one of them. */
export type WeightKind = 'attention' | 'linear-attention' | 'dense' | 'shared' | 'experts' | 'router' | 'head' | 'embedding';

export interface WeightFormat {
  readonly note: QuantisationNote;
  /** Bits per element, scales counted. */
  bitsOf(kind: WeightKind): number;
  readonly notModelled: readonly string[];
}

const PLAIN_BITS = 16;

/** Layers by which all of their kind are judged: lists name each layer, and a kind may be missing in some. */
export interface SampleLayers {
  readonly attention: number;
  readonly state: number;
  readonly dense: number;
  readonly experts: number;
}

/** Names as checkpoints have them, without `model.` and `language_model.`. */
function namesOf(kind: WeightKind, at: SampleLayers): readonly string[] {
  switch (kind) {
    case 'attention':
      return [`layers.${at.attention}.self_attn.o_proj`];
    case 'linear-attention':
      return [`layers.${at.state}.linear_attn.out_proj`, `layers.${at.state}.mixer.out_proj`];
    case 'dense':
      return [`layers.${at.dense}.mlp.down_proj`];
    case 'shared':
      return [`layers.${at.experts}.mlp.shared_experts.down_proj`, `layers.${at.experts}.mlp.shared_expert.down_proj`];
    case 'experts':
      return [
        `layers.${at.experts}.mlp.experts.0.down_proj`,
        `layers.${at.experts}.mlp.experts`,
        `layers.${at.experts}.block_sparse_moe.experts.0.w2`,
      ];
    case 'router':
      return [`layers.${at.experts}.mlp.gate`];
    case 'head':
      return ['lm_head'];
    case 'embedding':
      return ['embed_tokens'];
  }
}

export interface WeightFormatInput {
  readonly config: Fields;
  readonly text: Fields;
  /** `hf_quant_config.json`, where a ModelOpt checkpoint has one. */
  readonly hfQuantConfig?: Fields;
  readonly samples: SampleLayers;
  readonly hasExperts: boolean;
}

export function readWeightFormat(input: WeightFormatInput): WeightFormat {
  const { config, text, hfQuantConfig, samples, hasExperts } = input;
  const inner = hfQuantConfig === undefined ? undefined : fieldsAt(hfQuantConfig, 'quantization');
  const quant = fieldsAt(config, 'quantization_config') ?? fieldsAt(text, 'quantization_config') ?? inner;
  if (quant === undefined) return plainFormat();
  const method = textAt(quant, 'quant_method') || textAt(quant, 'quant_algo');
  const bits = bitsOfMethod(quant, method);
  const skipped = [
    ...namesAt(quant, 'ignore'),
    ...namesAt(quant, 'modules_to_not_convert'),
    ...namesAt(quant, 'exclude_modules'),
  ];
  const isExpertsOnly = method === 'mxfp4'; // gpt-oss: the rest is in modules_to_not_convert as well
  const perModule = fieldsAt(quant, 'quantized_layers');
  const expertType = textAt(config, 'expert_dtype') || textAt(text, 'expert_dtype');
  const bitsOf = (kind: WeightKind): number => {
    // No method quantises the router, the norms or the embedding; the head only where it is listed.
    if (kind === 'router' || kind === 'embedding') return PLAIN_BITS;
    if (kind === 'experts' && expertType === 'fp4') return 4.25; // DeepSeek-V4: FP4 with one scale byte for 32
    const names = namesOf(kind, samples);
    if (perModule !== undefined) return bitsOfListed(perModule, names) ?? PLAIN_BITS;
    if (kind === 'head' || (isExpertsOnly && kind !== 'experts')) return PLAIN_BITS;
    return skipped.some((pattern) => names.some((name) => matchesModule(pattern, name))) ? PLAIN_BITS : (bits ?? PLAIN_BITS);
  };
  return {
    note: {
      method: textAt(quant, 'quant_algo') || method,
      weightBits: bitsOf(hasExperts ? 'experts' : 'dense'),
      kvCacheAlgorithm: kvAlgorithmOf(quant, inner),
      hasKvCacheScheme: isFields(quant['kv_cache_scheme']),
    },
    bitsOf,
    notModelled:
      bits === undefined && perModule === undefined ? [`weights quantised by "${method.slice(0, 40)}", counted as 16 bits`] : [],
  };
}

function plainFormat(): WeightFormat {
  const note = { method: '', weightBits: PLAIN_BITS, kvCacheAlgorithm: '', hasKvCacheScheme: false };
  return { note, bitsOf: () => PLAIN_BITS, notModelled: [] };
}

/** ModelOpt says it as `kv_cache_quant_algo`, or as a scheme of eight bits beside `quant_method: modelopt`. */
function kvAlgorithmOf(quant: Fields, inner: Fields | undefined): string {
  const named = textAt(quant, 'kv_cache_quant_algo') || (inner === undefined ? '' : textAt(inner, 'kv_cache_quant_algo'));
  if (named !== '') return named;
  const scheme = fieldsAt(quant, 'kv_cache_scheme');
  const isModelOpt = textAt(quant, 'quant_method').startsWith('modelopt');
  return isModelOpt && scheme !== undefined && countAt(scheme, 'num_bits') === 8 ? 'FP8' : '';
}

function bitsOfMethod(quant: Fields, method: string): number | undefined {
  const algorithm = textAt(quant, 'quant_algo');
  if (algorithm !== '') return bitsOfAlgorithm(algorithm, countAt(quant, 'group_size') ?? groupSizeOf(quant));
  const bits = countAt(quant, 'bits', 'w_bit', 'num_bits');
  const group = countAt(quant, 'group_size', 'q_group_size') ?? 128;
  switch (method) {
    case 'compressed-tensors':
      return bitsOfGroups(quant);
    case 'awq':
    case 'gptq':
    case 'gptq_marlin':
    case 'awq_marlin':
      return bits === undefined ? undefined : bits + (16 + bits) / Math.max(group, 1); // a 16-bit scale and a zero point for each group
    case 'auto-round':
    case 'intel/auto-round':
      return bits === undefined ? undefined : bits + (16 + bits) / Math.max(group, 1);
    case 'fp8':
      return listAt(quant, 'weight_block_size').length === 2 ? 8 + 32 / 128 ** 2 : 8; // one 32-bit scale for 128 × 128
    case 'fbgemm_fp8':
      return 8;
    case 'mxfp4':
      return 4 + 8 / 32; // one scale byte for 32
    default:
      return undefined;
  }
}

function bitsOfAlgorithm(algorithm: string, group: number | undefined): number | undefined {
  if (algorithm.includes('NVFP4')) return 4 + 8 / 16; // one FP8 scale for 16
  if (algorithm.startsWith('FP8')) return 8;
  if (/^W4A/.test(algorithm)) return 4 + 16 / (group ?? 128);
  if (/^(W8A|INT8)/.test(algorithm)) return 8;
  return undefined;
}

function groupSizeOf(quant: Fields): number | undefined {
  const weights = firstWeights(quant);
  return weights === undefined ? undefined : countAt(weights, 'group_size');
}

function bitsOfGroups(quant: Fields): number | undefined {
  const weights = firstWeights(quant);
  const bits = weights === undefined ? undefined : countAt(weights, 'num_bits');
  if (weights === undefined || bits === undefined) return undefined;
  const group = countAt(weights, 'group_size');
  if (textAt(weights, 'type') === 'float' && bits === 4) return 4 + 8 / (group ?? 16);
  return group === undefined || group === 0 ? bits : bits + 16 / group; // one 16-bit scale for each group
}

function firstWeights(quant: Fields): Fields | undefined {
  const groups = fieldsAt(quant, 'config_groups');
  const first = groups === undefined ? undefined : Object.values(groups).find(isFields);
  return first === undefined ? undefined : fieldsAt(first, 'weights');
}

function bitsOfListed(modules: Fields, names: readonly string[]): number | undefined {
  const key = Object.keys(modules).find((module) => names.includes(shortName(module)));
  const entry = key === undefined ? undefined : modules[key];
  return isFields(entry) ? bitsOfAlgorithm(textAt(entry, 'quant_algo'), countAt(entry, 'group_size')) : undefined;
}

function namesAt(quant: Fields, name: string): string[] {
  return listAt(quant, name).filter((pattern): pattern is string => typeof pattern === 'string');
}

function shortName(name: string): string {
  return name.replace(/^(model\.)?(language_model\.)?(model\.)?/, '');
}

/**
 * Whether a pattern of an ignore list means a module: `re:.*self_attn.*`, `model.layers.3.self_attn*`, `lm_head`, `gate`.
 * Only what lists really use: literal pieces in order, with `.*` or `*` between them, and `(a|b)` for either.
 */
export function matchesModule(pattern: string, name: string): boolean {
  const isRegex = pattern.startsWith('re:');
  const plain = isRegex ? pattern.slice(3).replace(/^\^/, '').replace(/\$$/, '') : pattern;
  return expandEither(plain).some((one) => {
    const pieces = one.split(isRegex ? /\.\*|\.\+|\\d\+/ : '*').map((piece) => shortName(piece.replaceAll('\\.', '.')));
    const isOpenAtStart = pieces[0] === '' && pieces.length > 1;
    // `gate` in a plain list means the module of that last name, wherever it lies.
    const isLastName = !isRegex && pieces.length === 1 && !one.includes('.');
    if (isLastName) return name === one || name.endsWith(`.${one}`) || name.includes(`.${one}.`);
    let from = 0;
    for (const [at, piece] of pieces.entries()) {
      const found = name.indexOf(piece, from);
      if (found === -1 || (at === 0 && !isOpenAtStart && found !== 0)) return false;
      from = found + piece.length;
    }
    return pieces.at(-1) === '' || from === name.length || name[from] === '.';
  });
}

/** `mlp\.(gate|up)_proj` → two patterns. One pair of parentheses; nested ones are left as they are. */
function expandEither(pattern: string): string[] {
  const match = /^([^()]*)\(([^()]*)\)([^()]*)$/.exec(pattern);
  if (match === null) return [pattern];
  return (match[2] ?? '').split('|').map((word) => `${match[1] ?? ''}${word}${match[3] ?? ''}`);
}
