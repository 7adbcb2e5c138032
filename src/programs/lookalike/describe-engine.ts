/** What the lookalike says about itself, in the shapes of the two engines. Pure. */
import type { Scenario } from './scenario.ts';
import type { Settings } from './settings.ts';
import { STOP_ID, TEMPLATE_HASH, VOCABULARY_SIZE } from './tokens.ts';

/** It has no scheduler yet and works on all it is given; this is more than Aerie ever asks of one server (2,048). */
const RUNNING_REQUESTS = 4096;

export function renderModels({ servedModelName, maxModelLen }: Settings, createdAt: number): object {
  return {
    object: 'list',
    data: [
      {
        id: servedModelName,
        object: 'model',
        created: Math.floor(createdAt / 1000),
        owned_by: 'vllm',
        root: servedModelName,
        parent: null,
        max_model_len: maxModelLen,
      },
    ],
  };
}

export function renderServerInfo({ servedModelName, maxModelLen }: Settings, { serverInfo, version }: Scenario): object {
  return {
    model_path: servedModelName,
    served_model_name: servedModelName,
    kv_cache_dtype: 'bf16',
    context_length: maxModelLen,
    max_total_num_tokens: RUNNING_REQUESTS * maxModelLen, // there is no pool yet, so it is never full
    max_running_requests: RUNNING_REQUESTS,
    version,
    vocab_size: VOCABULARY_SIZE,
    stop_token_ids: [STOP_ID],
    weights: 'lookalike',
    template_hash: TEMPLATE_HASH,
    ...serverInfo,
  };
}

const BLOCK_TOKENS = 16; // vLLM's default

/** vLLM's metric from which the type and the size of the KV cache are read. */
export function renderMetrics(settings: Settings, scenario: Scenario): string {
  const info = renderServerInfo(settings, scenario) as Readonly<Record<string, unknown>>;
  const blocks = Number(info['max_total_num_tokens']) / BLOCK_TOKENS;
  const labels = `block_size="${BLOCK_TOKENS}",cache_dtype="${String(info['kv_cache_dtype'])}",engine="0",num_gpu_blocks="${blocks}"`;
  return `# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{${labels}} 1.0\n`;
}
