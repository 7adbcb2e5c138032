/**
 * What of a model decides memory and speed: its layers, what each stores per token, its experts, and where its weights lie.
 * Made from a model's own `config.json` by `read-model-config.ts`; no number here hangs on a model's name. Pure types.
 */

/** Layers that store the same per token (or, for `state`, per request). */
export type CacheGroup = HeadCache | LatentCache | CompressedCache | StateCache;

/** Keys and values of each KV head; MHA, GQA and MQA. Heads are split over the attention ranks, at least one on each. */
export interface HeadCache {
  readonly kind: 'heads';
  readonly layers: number;
  readonly kvHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  /** Tokens that a layer looks back; 0 = all. */
  readonly window: number;
}

/** One latent vector for all heads (MLA): whole on every rank, whatever tp is. */
export interface LatentCache {
  readonly kind: 'latent';
  readonly layers: number;
  readonly rank: number;
  readonly rope: number;
  /** Elements of the sparse-attention indexer's key (DSA); 0 = no indexer. */
  readonly indexerDim: number;
}

/** One latent vector for several tokens (DeepSeek-V4): layers that keep one in 4, one in 128, or those of a window alone. Whole on every rank. */
export interface CompressedCache {
  readonly kind: 'compressed';
  /** All layers, the draft's too where the config lists it. */
  readonly layers: number;
  readonly layersOf4: number;
  readonly layersOf128: number;
  readonly nope: number;
  readonly rope: number;
  readonly indexerDim: number;
  readonly window: number;
}

/** A state of fixed size per request (Mamba, gated delta nets, KDA). Elements of one layer over all ranks. */
export interface StateCache {
  readonly kind: 'state';
  readonly layers: number;
  readonly convElements: number;
  /** Kept in 32 bits by both engines unless told otherwise. */
  readonly recurrentElements: number;
}

export interface ExpertShape {
  readonly count: number;
  readonly perToken: number;
  readonly intermediateSize: number;
  /** Layers with routed experts. */
  readonly layers: number;
}

/**
 * How a part of the weights lies on the GPUs: `tensor` over all tp ranks, `attention` over the attention ranks (tp / dp with
 * DP attention), `kv` over the KV heads of the attention ranks (at least one head each), `experts` over tp (or ep), `whole` on every rank.
 */
export type WeightSplit = 'tensor' | 'attention' | 'kv' | 'experts' | 'whole';

export interface WeightPart {
  readonly name: string;
  readonly parameters: number;
  readonly bytes: number;
  readonly split: WeightSplit;
  /** For `kv`: the number of KV heads. */
  readonly kvHeads: number;
  /** Spread over the pipeline stages; false for what lies at one end (embedding, head). */
  readonly isPerLayer: boolean;
}

/** What the checkpoint says about quantisation, as far as a KV type or a policy hangs on it. */
export interface QuantisationNote {
  /** `quant_method` or `quant_algo` of the config, '' where the weights are plain. */
  readonly method: string;
  /** Bits per element of most of the weights, scales counted; 16 where plain. */
  readonly weightBits: number;
  /** `kv_cache_quant_algo` of a ModelOpt config, '' where there is none. */
  readonly kvCacheAlgorithm: string;
  /** Whether `kv_cache_scheme` (compressed-tensors) is there. */
  readonly hasKvCacheScheme: boolean;
}

export interface VisionShape {
  readonly layers: number;
  readonly hiddenSize: number;
  /** `num_hidden_layers` of the vision config under that very name, which SGLang's reserve reads; 24, its default, where it has another. */
  readonly listedLayers: number;
}

export interface ModelShape {
  readonly name: string;
  /** `architectures[0]` and `model_type` of the config. */
  readonly architecture: string;
  readonly modelType: string;
  readonly layers: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly attentionHeads: number;
  readonly vocabularySize: number;
  readonly contextTokens: number;
  /** The type the checkpoint is written in, which engines compute in: `bf16`, `f16` or `f32`. */
  readonly computeType: 'bf16' | 'f16' | 'f32';
  readonly caches: readonly CacheGroup[];
  readonly experts?: ExpertShape;
  readonly vision?: VisionShape;
  /** Layers for multi-token prediction that come with the checkpoint; loaded only where speculation asks for them. */
  readonly draftLayers: number;
  readonly weights: readonly WeightPart[];
  readonly quantisation: QuantisationNote;
  /** Where the numbers are from. */
  readonly sources: readonly string[];
  /** Parts of this model that no formula here covers, each one named. Empty: all of it is covered. */
  readonly notModelled: readonly string[];
}
