/** What the engine says about itself: the bodies of the GET endpoints. Pure. */
import type { LoadedModel } from './model.ts';

/** vLLM's list of models. */
export function describeModels(model: LoadedModel, nowMs: number) {
  return {
    object: 'list',
    data: [
      {
        id: model.flags.servedModelName,
        object: 'model',
        created: Math.floor(nowMs / 1000),
        owned_by: 'aerie',
        root: model.flags.modelPath,
        parent: null,
        max_model_len: model.flags.contextTokens,
        permission: [],
      },
    ],
  };
}

/** vLLM's one metric from which the type and the size of the KV cache are read. A block is one token here. */
export function describeMetrics({ flags }: LoadedModel): string {
  const labels = `block_size="1",cache_dtype="${kvTypeOf(flags)}",engine="0",num_gpu_blocks="${flags.sequences * flags.contextTokens}"`;
  const head = '# HELP vllm:cache_config_info Information of the KV cache\n# TYPE vllm:cache_config_info gauge\n';
  return `${head}vllm:cache_config_info{${labels}} 1.0\n`;
}

function kvTypeOf({ kvType }: LoadedModel['flags']): string {
  return kvType === 'f16' ? 'float16' : kvType;
}

/** SGLang's key names first, then what only this engine has. */
export function describeServer(model: LoadedModel) {
  const { flags } = model;
  return {
    model_path: flags.modelPath,
    served_model_name: flags.servedModelName,
    kv_cache_dtype: kvTypeOf(flags),
    context_length: flags.contextTokens,
    max_total_num_tokens: flags.sequences * flags.contextTokens,
    max_running_requests: flags.sequences,
    version: model.version,
    weights: model.weights,
    template_hash: model.templateHash,
    vocab_size: model.vocabulary.tokens.length,
    stop_token_ids: [...model.endIds],
    revision: flags.revision,
    tokenizer: false,
    threads: flags.threads,
    num_running_reqs: model.pool.running,
    num_queue_reqs: model.pool.queued,
    generated_tokens: model.activity.generated,
  };
}

/** Everything that a tokenizer.json can be made from. */
export function describeTokenizer(model: LoadedModel) {
  const { vocabulary } = model;
  return {
    model: vocabulary.model,
    pre: vocabulary.pre,
    tokens: vocabulary.tokens,
    token_types: vocabulary.tokenTypes,
    merges: vocabulary.merges,
    chat_template: model.templateSource,
    bos_token_id: vocabulary.bosId,
    eos_token_id: vocabulary.eosId,
    add_bos: vocabulary.addBos,
  };
}
