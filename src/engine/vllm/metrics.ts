/** vLLM's `/metrics`, which are always there; one set of figures for each of its engines. Names of 0.6 to 0.21. */
import { readFigure, unlessEmpty } from '../counters.ts';
import type { MetricsReading } from '../dialect.ts';

export const vllmMetrics: MetricsReading = {
  request: { method: 'GET', path: '/metrics' },
  parse({ status, body }) {
    if (status !== 200) return undefined;
    return unlessEmpty({
      generatedTokens: readFigure(body, ['vllm:generation_tokens_total']),
      promptTokens: readFigure(body, ['vllm:prompt_tokens_total']),
      running: readFigure(body, ['vllm:num_requests_running']),
      waiting: readFigure(body, ['vllm:num_requests_waiting']),
    });
  },
};
