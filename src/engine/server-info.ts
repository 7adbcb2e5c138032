/** `/server_info` with SGLang's key names, and the names the embedded engine adds. Anything missing stays unknown. Pure. */
import { type ServerFacts, UNKNOWN_FACTS } from './dialect.ts';
import { countOf, listOf, looseObject, parseLoose, textOf } from './loose-json.ts';

/** SGLang's own account holds the server's key among its flags: only what is named here is ever kept. */
export function factsFromServerInfo(body: string): ServerFacts {
  const info = parseLoose(body);
  // One entry for each data-parallel group, with what became of the flags.
  const states = listOf(info['internal_states']).map(looseObject);
  const count = (key: string) => Math.max(0, countOf(info[key] ?? states[0]?.[key]));
  const perGroup = (key: string) => states.reduce((sum, state) => sum + Math.max(0, countOf(state[key])), 0);
  return {
    ...UNKNOWN_FACTS,
    model: textOf(info['served_model_name']) || textOf(info['model_path']),
    revision: textOf(info['revision']),
    engineVersion: textOf(info['version']),
    weights: textOf(info['weights']) || textOf(info['quantization']) || told(info['dtype']),
    kvCacheDtype: firstTold([info['kv_cache_dtype'], ...states.map((state) => state['kv_cache_dtype'])]),
    templateHash: textOf(info['template_hash']),
    contextTokens: count('context_length'),
    vocabularySize: count('vocab_size'),
    stopIds: listOf(info['stop_token_ids']).filter((id): id is number => countOf(id) >= 0),
    sequences: count('max_running_requests') || perGroup('effective_max_running_requests_per_dp'),
    poolTokens: count('max_total_num_tokens'),
    kvBytesPerToken: states.map(readBytesPerToken).find((bytes) => bytes > 0) ?? 0,
    reasoningParser: textOf(info['reasoning_parser']),
    toolCallParser: textOf(info['tool_call_parser']),
  };
}

/**
 * `memory_usage: {kvcache, token_capacity}`: GiB with two decimals, and tokens. A pool below 0.1 GiB is rounded by more than
 * one part in twenty, which tells no type.
 */
function readBytesPerToken(state: Readonly<Record<string, unknown>>): number {
  const usage = looseObject(state['memory_usage']);
  const [size, tokens] = [usage['kvcache'], countOf(usage['token_capacity'])];
  return typeof size === 'number' && Number.isFinite(size) && size >= 0.1 && tokens > 0 ? (size * 2 ** 30) / tokens : 0;
}

function firstTold(values: readonly unknown[]): string {
  return values.map(told).find((value) => value !== 'unknown') ?? 'unknown';
}

/** `auto` is what was asked for, not what there is: some checkpoints turn it into fp8 without a word (docs/decisions/0007). */
export function told(value: unknown): string {
  const text = textOf(value).trim();
  return text === '' || text.toLowerCase() === 'auto' ? 'unknown' : text;
}
