/** vLLM's sentences of a start, by version (0.10 to 0.21). Pure; sources: field notes on its log formats, and public logs. */
import type { EngineLaunch } from '../../../capacity/engine-launch.ts';
import type { FlagValue } from '../../../engine/launch-flags.ts';
import { isAtLeast } from '../../../engine/version.ts';
import { pythonRepr } from './server-args.ts';

export function nonDefaultArgs(model: string, values: Readonly<Record<string, FlagValue>>): string {
  const given = Object.entries(values).map(([name, value]) => `'${name.replaceAll('-', '_')}': ${pythonRepr(value)}`);
  return `non-default args: {${[`'model_tag': ${pythonRepr(model)}`, `'model': ${pythonRepr(model)}`, ...given].join(', ')}}`;
}

export function engineConfig(model: string, launch: EngineLaunch, served: string): string {
  const fields = [
    `model=${pythonRepr(model)}`,
    'speculative_config=None',
    `tokenizer=${pythonRepr(model)}`,
    'skip_tokenizer_init=False',
    'tokenizer_mode=auto',
    'revision=None',
    'trust_remote_code=True',
    'dtype=torch.bfloat16',
    `max_seq_len=${launch.contextTokens}`,
    'load_format=auto',
    `tensor_parallel_size=${launch.tp}`,
    `pipeline_parallel_size=${launch.pp}`,
    `data_parallel_size=${launch.dp}`,
    'disable_custom_all_reduce=False',
    'quantization=None',
    `enforce_eager=${launch.graphBatches.length === 0 ? 'True' : 'False'}`,
    `kv_cache_dtype=${launch.kvType.asked}`,
    'device_config=cuda',
    'seed=0',
    `served_model_name=${served}`,
    `enable_prefix_caching=${launch.hasRadixCache ? 'True' : 'False'}`,
    'chunked_prefill_enabled=True',
  ];
  return `Initializing a V1 LLM engine (v${launch.version}) with config: ${fields.join(', ')}`;
}

export function modelLoaded({ version }: EngineLaunch, GiB: number, seconds: number): string {
  const memory = (isAtLeast(version, [0, 13, 0]) ?? true) ? ' memory' : '';
  return `Model loading took ${GiB.toFixed(memory === '' ? 4 : 2)} GiB${memory} and ${seconds.toFixed(6)} seconds`;
}

export function compiled({ version }: EngineLaunch, seconds: number): string {
  const verb = (isAtLeast(version, [0, 17, 0]) ?? true) ? 'took' : 'takes';
  return `torch.compile ${verb} ${seconds.toFixed(2)} s in total`;
}

/** 1,234,567 */
export function grouped(value: number): string {
  return Math.round(value)
    .toString()
    .replaceAll(/\B(?=(\d{3})+$)/g, ',');
}

/** vLLM refuses to start where one request of the longest length does not fit. */
export function tooLong(launch: EngineLaunch, neededGiB: number, hasGiB: number, tokens: number): string {
  const longest = Math.floor(tokens / launch.pageTokens) * launch.pageTokens;
  return `ValueError: To serve at least one request with the models's max seq len (${launch.contextTokens}), (${neededGiB.toFixed(2)} GiB KV cache is needed, which is larger than the available KV cache memory (${hasGiB.toFixed(2)} GiB). Based on the available memory, the estimated maximum model length is ${longest}. Try increasing \`gpu_memory_utilization\` or decreasing \`max_model_len\` when initializing the engine.`;
}
