import { expect, test } from 'vitest';
import { dialectOf } from './dialects.ts';

const read = (engine: 'sglang' | 'vllm' | 'embedded', body: string, status = 200) =>
  dialectOf(engine).metrics?.parse({ status, body });

/** SGLang 0.4.6: names without the live counter. */
const OLD = `# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="m"} 7.557572e+06
sglang:prompt_tokens_total{model_name="m"} 8128902.0
sglang:num_running_reqs{model_name="m"} 34.0
sglang:num_queue_reqs{model_name="m"} 116.0
`;
/** From 0.5.8 on, two data-parallel groups of two ranks each that all report. */
const NEW = ['0', '1']
  .flatMap((dp) => ['0', '1'].map((tp) => `dp_rank="${dp}",engine_type="unified",model_name="m",tp_rank="${tp}"`))
  .map(
    (labels) => `sglang:realtime_tokens_total{${labels},mode="decode"} 500.0
sglang:realtime_tokens_total{${labels},mode="prefill_compute"} 100.0
sglang:realtime_tokens_total{${labels},mode="prefill_cache"} 900.0
sglang:num_running_reqs{${labels}} 3.0
sglang:num_queue_reqs{${labels}} 0.0
`,
  )
  .join('');

test('SGLang’s counters: those of requests that ended, or the live ones where it has them', () => {
  expect(read('sglang', OLD)).toEqual({ generatedTokens: 7_557_572, promptTokens: 8_128_902, running: 34, waiting: 116 });
  expect(read('sglang', OLD.replaceAll('sglang:', 'sglang_'))).toEqual(read('sglang', OLD));
  expect(read('sglang', NEW)).toEqual({ generatedTokens: 1000, promptTokens: 200, running: 6, waiting: 0 });
  const both = `${OLD}sglang:realtime_tokens_total{mode="decode"} 9000000.0\n`;
  expect(read('sglang', both)?.generatedTokens).toBe(9_000_000);
});

test('figures of one rank that differ by request are added up', () => {
  const split = ['a', 'b'].map((priority) => `sglang:num_queue_reqs{priority="${priority}",tp_rank="0"} 2.0\n`).join('');
  expect(read('sglang', split)?.waiting).toBe(4);
});

test('vLLM’s engines are added up', () => {
  const page = ['0', '1']
    .map(
      (engine) => `vllm:num_requests_running{engine="${engine}",model_name="m"} 8.0
vllm:num_requests_waiting{engine="${engine}",model_name="m"} 1.0
vllm:generation_tokens_total{engine="${engine}",model_name="m"} 100.0
vllm:prompt_tokens_total{engine="${engine}",model_name="m"} 50.0
vllm:generation_tokens_created{engine="${engine}",model_name="m"} 1.7e+09
`,
    )
    .join('');
  expect(read('vllm', page)).toEqual({ generatedTokens: 200, promptTokens: 100, running: 16, waiting: 2 });
});

test('the embedded engine says it in its account of itself', () => {
  expect(read('embedded', '{"generated_tokens":12,"num_running_reqs":2,"num_queue_reqs":0}')).toEqual({
    generatedTokens: 12,
    promptTokens: undefined,
    running: 2,
    waiting: 0,
  });
});

test('a page that is not there, or is of something else, is no figure; a name that is missing is not 0', () => {
  for (const engine of ['sglang', 'vllm', 'embedded'] as const) {
    expect(read(engine, '', 404)).toBeUndefined();
    expect(read(engine, OLD.replaceAll('sglang', 'other'))).toBeUndefined();
    expect(read(engine, '<html>')).toBeUndefined();
  }
  expect(read('sglang', 'sglang:num_running_reqs 1.0\nsglang:num_queue_reqs NaN\n')).toEqual({
    generatedTokens: undefined,
    promptTokens: undefined,
    running: 1,
    waiting: undefined,
  });
});
