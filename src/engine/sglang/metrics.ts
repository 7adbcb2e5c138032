/** SGLang's `/metrics`, there only with `--enable-metrics`. Names of 0.4.6 to 0.5.18; some builds write `sglang_` for `sglang:`. */
import { type EngineCounters, readFigure, unlessEmpty } from '../counters.ts';
import type { MetricsReading } from '../dialect.ts';

const both = (name: string) => [`sglang:${name}`, `sglang_${name}`];

export const sglangMetrics: MetricsReading = {
  request: { method: 'GET', path: '/metrics' },
  parse: ({ status, body }) => (status === 200 ? unlessEmpty(readCounters(body)) : undefined),
};

/** `generation_tokens_total` moves when a request ends, so a batch of long answers stands still by it; the live counter (from 0.5.8) does not. */
function readCounters(body: string): EngineCounters {
  const live = (mode: string) => readFigure(body, both('realtime_tokens_total'), { mode });
  return {
    generatedTokens: live('decode') ?? readFigure(body, both('generation_tokens_total')),
    promptTokens: live('prefill_compute') ?? readFigure(body, both('prompt_tokens_total')),
    running: readFigure(body, both('num_running_reqs')),
    waiting: readFigure(body, both('num_queue_reqs')),
  };
}
