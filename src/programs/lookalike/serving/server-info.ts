/** What a served SGLang says about itself: `/server_info`, `/get_model_info`, loads. Names are those of ServerArgs and the scheduler. Pure. */
import { isAtLeast } from '../../../engine/version.ts';
import { longestPromptTokens, type Serving } from './serving.ts';

/** As the launcher took them: null where nothing was said. The type of the KV cache is written back from 0.5.18 on. */
function serverArgs({ life, flags }: Serving, name: string): Record<string, unknown> {
  const { launch, shape } = life;
  const said = (flag: string) => flags[flag] ?? null;
  const resolved = isAtLeast(life.version, [0, 5, 18]) ?? true;
  return {
    model_path: textIn(flags['model-path']) || shape.name,
    tokenizer_path: textIn(flags['tokenizer-path']) || textIn(flags['model-path']) || shape.name,
    served_model_name: name,
    revision: said('revision'),
    dtype: textIn(flags['dtype']) || 'auto',
    quantization: said('quantization'),
    kv_cache_dtype: resolved ? launch.kvType.type : launch.kvType.asked,
    context_length: said('context-length'),
    mem_fraction_static: launch.memoryFraction,
    tp_size: launch.tp,
    dp_size: launch.dp,
    pp_size: launch.pp,
    ep_size: launch.ep,
    enable_dp_attention: launch.isDpAttention,
    page_size: launch.pageTokens,
    chunked_prefill_size: launch.prefillChunkTokens || -1,
    max_prefill_tokens: launch.maxPrefillTokens,
    max_running_requests: said('max-running-requests'),
    max_total_tokens: said('max-total-tokens'),
    schedule_policy: launch.schedulePolicy,
    schedule_conservativeness: launch.scheduleConservativeness,
    disable_radix_cache: !launch.hasRadixCache,
    enable_mixed_chunk: launch.isMixedChunk,
    disable_cuda_graph: launch.graphBatches.length === 0,
    cuda_graph_max_bs: launch.graphBatches.at(-1) ?? null,
    enable_hierarchical_cache: launch.hierarchicalCache !== undefined,
    hicache_size: launch.hierarchicalCache?.sizeGB ?? 0,
    hicache_ratio: launch.hierarchicalCache?.ratio ?? 2,
    hicache_write_policy: launch.hierarchicalCache?.writePolicy ?? 'write_through',
    enable_metrics: flags['enable-metrics'] === true,
    reasoning_parser: said('reasoning-parser'),
    tool_call_parser: said('tool-call-parser'),
    api_key: null,
  };
}

/** Asks the scheduler, so that the real one does not answer while it hangs. */
export function renderServerInfo(serving: Serving, name: string): object {
  const { life, log } = serving;
  const { prediction, launch } = life;
  const args = serverArgs(serving, name);
  const groups = launch.isDpAttention ? launch.dp : 1;
  const state = {
    ...args,
    last_gen_throughput: log.figures.generatedPerSecond,
    memory_usage: {
      weight: twoDigits(prediction.weightsGiBPerGpu),
      kvcache: twoDigits(prediction.poolGiB),
      token_capacity: prediction.poolTokens,
      graph: twoDigits(prediction.graphsGiB),
    },
    effective_max_running_requests_per_dp: prediction.maxRunningRequests,
  };
  return {
    ...args,
    status: 'ready',
    max_total_num_tokens: prediction.poolTokens,
    max_req_input_len: longestPromptTokens(serving),
    internal_states: Array.from({ length: groups }, () => state),
    version: life.version,
  };
}

export function renderModelInfo(serving: Serving, name: string): object {
  const args = serverArgs(serving, name);
  return {
    model_path: args['model_path'],
    tokenizer_path: args['tokenizer_path'],
    is_generation: true,
    preferred_sampling_params: null,
    weight_version: 'default',
    has_image_understanding: serving.life.shape.vision !== undefined,
    has_audio_understanding: false,
  };
}

/** `/get_load`: a list, one for each data-parallel rank. */
export function renderLoad(serving: Serving): object {
  const { running, queued, usedTokens } = serving.scheduler.now();
  return [{ dp_rank: 0, num_reqs: running + queued, num_waiting_reqs: queued, num_tokens: usedTokens }];
}

export function renderLoads(serving: Serving): object {
  const { running, queued, usedTokens } = serving.scheduler.now();
  const { poolTokens, maxRunningRequests } = serving.scheduler.server;
  const load = {
    ...{ dp_rank: 0, num_running_reqs: running, num_waiting_reqs: queued, num_used_tokens: usedTokens },
    ...{ max_total_num_tokens: poolTokens, token_usage: usedTokens / poolTokens, max_running_requests: maxRunningRequests },
    gen_throughput: serving.log.figures.generatedPerSecond,
  };
  return { version: serving.life.version, dp_rank_count: 1, loads: [load] };
}

const textIn = (value: unknown): string => (typeof value === 'string' ? value : '');
const twoDigits = (value: number): number => Math.round(value * 100) / 100;
