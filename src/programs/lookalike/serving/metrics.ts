/** `/metrics` of a served engine in the text format of Prometheus, with the names of its version (docs/lookalike.md). Pure. */
import { isAtLeast } from '../../../engine/version.ts';
import type { Figures, Spread } from './figures.ts';
import type { Serving } from './serving.ts';

type Value = number | Spread | Readonly<Record<string, number>>;
/** Name without its prefix; a record has one sample for each value of a label. */
type Metric = readonly [kind: 'gauge' | 'counter' | 'histogram', name: string, value: Value, label?: string];

export function renderMetrics(serving: Serving, model: string): string {
  serving.log.look();
  return serving.life.engine === 'sglang' ? renderSglang(serving, model) : renderVllm(serving, model);
}

function renderSglang({ life, log, scheduler }: Serving, model: string): string {
  const { figures } = log;
  const { poolTokens, pageTokens } = scheduler.server;
  const from = (...least: [number, number, number]) => isAtLeast(life.version, least) ?? true;
  const metrics: Metric[] = [
    ['gauge', 'num_running_reqs', figures.running],
    ['gauge', 'num_used_tokens', figures.usedTokens],
    ['gauge', 'token_usage', twoDigits(figures.usedTokens / poolTokens)],
    ['gauge', 'gen_throughput', figures.generatedPerSecond],
    ['gauge', 'num_queue_reqs', figures.queued],
    ['gauge', 'cache_hit_rate', figures.hitRate],
    ['counter', 'prompt_tokens_total', figures.promptTokens],
    ['counter', 'generation_tokens_total', figures.generatedTokens],
    ['counter', 'cached_tokens_total', figures.cachedTokens],
    ['counter', 'num_requests_total', figures.requests],
    ['counter', from(0, 5, 8) ? 'num_aborted_requests_total' : 'num_aborted_requests', figures.aborted],
    ['histogram', 'time_to_first_token_seconds', figures.firstTokens],
    ['histogram', 'e2e_request_latency_seconds', figures.wholeRequests],
  ];
  if (from(0, 4, 10) && !from(0, 5, 8)) metrics.push(['gauge', 'total_retracted_reqs', figures.retracted]);
  if (from(0, 5, 8)) metrics.push(...sglangOf058(figures, poolTokens));
  if (from(0, 5, 12))
    metrics.push(
      ['gauge', 'kv_used_tokens', figures.usedTokens],
      ['gauge', 'kv_available_tokens', poolTokens - figures.usedTokens],
      ['gauge', 'page_size', pageTokens],
      ['gauge', 'context_len', life.launch.contextTokens],
      ['gauge', 'startup_available_gpu_memory_gb', twoDigits(life.prediction.freeAfterGraphsGiB)],
    );
  if (from(0, 5, 18))
    metrics.push(
      ['gauge', 'weight_memory_usage_gb', twoDigits(life.prediction.weightsGiBPerGpu)],
      ['gauge', 'kv_cache_memory_usage_gb', twoDigits(life.prediction.poolGiB)],
      ['gauge', 'graph_memory_usage_gb', twoDigits(life.prediction.graphsGiB)],
    );
  const ranks = from(0, 5, 0) ? { engine_type: 'unified', tp_rank: '0', pp_rank: '0' } : {};
  return render('sglang', { model_name: model, ...ranks }, metrics);
}

function sglangOf058(figures: Figures, poolTokens: number): Metric[] {
  return [
    ['gauge', 'max_total_num_tokens', poolTokens],
    ['gauge', 'num_retracted_reqs', figures.retracted],
    ['gauge', 'new_token_ratio', figures.ratio],
    ['gauge', 'utilization', twoDigits(figures.usedTokens / poolTokens)],
    [
      'counter',
      'realtime_tokens_total',
      { prefill_compute: figures.prefillTokens, prefill_cache: figures.prefillCachedTokens, decode: figures.decodeTokens },
      'mode',
    ],
  ];
}

function renderVllm({ life, log, scheduler, flags }: Serving, model: string): string {
  const { figures } = log;
  const { launch } = life;
  const { poolTokens } = scheduler.server;
  const from = (...least: [number, number, number]) => isAtLeast(life.version, least) ?? true;
  const { stop, length, abort } = figures.finished;
  const metrics: Metric[] = [
    ['gauge', 'num_requests_running', figures.running],
    ['gauge', 'num_requests_waiting', figures.queued],
    ['gauge', 'kv_cache_usage_perc', figures.usedTokens / poolTokens],
    ['counter', 'num_preemptions_total', figures.retracted],
    ['counter', 'prompt_tokens_total', figures.promptTokens],
    ['counter', 'generation_tokens_total', figures.generatedTokens],
    ['counter', 'request_success_total', { stop, length, abort }, 'finished_reason'],
    ['histogram', 'time_to_first_token_seconds', figures.firstTokens],
    ['histogram', 'e2e_request_latency_seconds', figures.wholeRequests],
  ];
  if (!from(0, 11, 0)) metrics.push(['gauge', 'gpu_cache_usage_perc', figures.usedTokens / poolTokens]);
  const labels = {
    block_size: String(launch.pageTokens),
    cache_dtype: launch.kvType.asked,
    enable_prefix_caching: launch.hasRadixCache ? 'True' : 'False',
    engine: '0',
    gpu_memory_utilization: String(launch.memoryFraction),
    num_gpu_blocks: String(Math.floor(poolTokens / launch.pageTokens)),
    swap_space: String(flags['swap-space'] ?? 4),
  };
  const config = `# HELP vllm:cache_config_info Information of the LLMEngine CacheConfig\n# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{${labelsOf(labels)}} 1.0\n`;
  return `${render('vllm', { engine: '0', model_name: model }, metrics)}${config}`;
}

function render(prefix: string, labels: Readonly<Record<string, string>>, metrics: readonly Metric[]): string {
  return metrics
    .map(([kind, name, value, label = '']) => {
      const full = `${prefix}:${name}`;
      const family = kind === 'counter' ? full.replace(/_total$/, '') : full;
      return `# TYPE ${family} ${kind}\n${samplesOf(full, labels, value, label)}`;
    })
    .join('');
}

function samplesOf(name: string, labels: Readonly<Record<string, string>>, value: Value, label: string): string {
  const sample = (suffix: string, more: Readonly<Record<string, string>>, number: number) =>
    `${name}${suffix}{${labelsOf({ ...labels, ...more })}} ${Number.isInteger(number) ? number.toFixed(1) : number}\n`;
  if (typeof value === 'number') return sample('', {}, value);
  if (label !== '')
    return Object.entries(value)
      .map(([of, number]) => sample('', { [label]: of }, number as number))
      .join('');
  const { sum, count } = value as Spread;
  return sample('_bucket', { le: '+Inf' }, count) + sample('_count', {}, count) + sample('_sum', {}, sum);
}

function labelsOf(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${value.replace(/[\\"]/g, '\\$&')}"`)
    .join(',');
}

const twoDigits = (value: number): number => Math.round(value * 100) / 100;
