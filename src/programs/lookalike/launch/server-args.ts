/** SGLang's line with all its arguments, a Python repr with resolved values. Pure. */

import type { EngineLaunch } from '../../../capacity/engine-launch.ts';
import type { ParsedFlags } from '../../../engine/launch-flags.ts';

export interface ArgumentsQuestion {
  readonly flags: ParsedFlags;
  readonly model: string;
  readonly host: string;
  readonly port: number;
  readonly launch: EngineLaunch;
}

/** Flags whose field has another name than the flag. */
const FIELD_NAMES: Readonly<Record<string, string>> = {
  'cuda-graph-max-bs-decode': 'cuda_graph_max_bs',
  'cuda-graph-bs-decode': 'cuda_graph_bs',
};

export function renderServerArgs(question: ArgumentsQuestion): string {
  const { flags, model, host, port, launch } = question;
  const text = (name: string, otherwise: string | null) => {
    const value = flags.values[name];
    return typeof value === 'string' ? value : otherwise;
  };
  const fields = new Map<string, unknown>([
    ['model_path', model],
    ['tokenizer_path', text('tokenizer-path', model)],
    ['tokenizer_mode', 'auto'],
    ['skip_tokenizer_init', false],
    ['load_format', 'auto'],
    ['trust_remote_code', false],
    ['context_length', null],
    ['host', host],
    ['port', port],
    ['dtype', 'auto'],
    ['quantization', null],
    ['kv_cache_dtype', launch.kvType.asked],
    ['mem_fraction_static', launch.memoryFraction],
    ['max_running_requests', launch.maxRunningAsked || null],
    ['max_total_tokens', launch.maxTotalTokensAsked || null],
    ['chunked_prefill_size', launch.prefillChunkTokens || -1],
    ['max_prefill_tokens', launch.maxPrefillTokens],
    ['schedule_policy', launch.schedulePolicy],
    ['schedule_conservativeness', launch.scheduleConservativeness],
    ['page_size', launch.pageTokens],
    ['device', 'cuda'],
    ['tp_size', launch.tp],
    ['pp_size', launch.pp],
    ['stream_interval', 1],
    ['random_seed', 0],
    ['watchdog_timeout', 300],
    ['dist_timeout', null],
    ['log_level', 'info'],
    ['api_key', null],
    ['served_model_name', text('served-model-name', model)],
    ['dp_size', launch.dp],
    ['ep_size', launch.ep],
    ['dist_init_addr', null],
    ['nnodes', 1],
    ['node_rank', 0],
    ['attention_backend', 'triton'],
    ['speculative_algorithm', null],
    ['enable_hierarchical_cache', false],
    ['hicache_ratio', 2.0],
    ['hicache_size', 0],
    ['disable_radix_cache', false],
    ['cuda_graph_max_bs', launch.graphBatches.at(-1) ?? null],
    ['cuda_graph_bs', launch.graphBatches],
    ['disable_cuda_graph', false],
    ['enable_metrics', false],
  ]);
  for (const [name, value] of Object.entries(flags.values)) {
    const field = FIELD_NAMES[name] ?? name.replaceAll('-', '_');
    if (!RESOLVED.has(field)) fields.set(field, value);
  }
  return `server_args=ServerArgs(${[...fields].map(([name, value]) => `${name}=${pythonRepr(value)}`).join(', ')})`;
}

/** These stand above with what became of them. */
const RESOLVED = new Set(['mem_fraction_static', 'chunked_prefill_size', 'page_size', 'cuda_graph_max_bs', 'cuda_graph_bs']);

export function pythonRepr(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (Array.isArray(value)) return `[${value.map(pythonRepr).join(', ')}]`;
  if (typeof value === 'number') return String(value);
  return `'${String(value).replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}
