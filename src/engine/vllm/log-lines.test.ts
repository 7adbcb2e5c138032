/** Lines as vLLM prints them; figures from public logs. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseVllmMessage as parse } from './log-lines.ts';

it.each([
  ['vLLM API server version 0.10.0', { kind: 'version', version: '0.10.0' }],
  [
    "non-default args: {'host': '0.0.0.0', 'port': 80, 'model': 'meta-llama/Meta-Llama-3-8B-Instruct'}",
    { kind: 'arguments', values: { host: '0.0.0.0', port: '80', model: 'meta-llama/Meta-Llama-3-8B-Instruct' } },
  ],
  [
    "Initializing a V1 LLM engine (v0.10.0) with config: model='m', tensor_parallel_size=8, kv_cache_dtype=fp8,  seed=0",
    { kind: 'arguments', values: { model: 'm', tensor_parallel_size: '8', kv_cache_dtype: 'fp8', seed: '0' } },
  ],
  ['Model loading took 22.05 GiB memory and 458.802968 seconds', { kind: 'weights-end', usedGiB: 22.05 }],
  ['Model loading took 5.7912 GiB and 4.054000 seconds', { kind: 'weights-end', usedGiB: 5.7912 }],
  ['Available KV cache memory: 5.69 GiB', { kind: 'pool-size', poolGiB: 5.69 }],
  ['GPU KV cache size: 148,816 tokens', { kind: 'pool', tokens: 148_816, dtype: '' }],
  ['# GPU blocks: 1478, # CPU blocks: 2048', { kind: 'pool', tokens: 23_648, dtype: '' }],
  ['Maximum concurrency for 32,768 tokens per request: 12.91x', { kind: 'concurrency', contextTokens: 32_768, requests: 12.91 }],
  ['Graph capturing finished in 71 secs, took 6.56 GiB', { kind: 'graphs-end', stage: 'decode', usedGiB: 6.56 }],
  [
    'Capturing CUDA graphs (decode, FULL):  50%|█████     | 17/34 [00:05<00:05,  3.1it/s]',
    { kind: 'graphs-progress', done: 17, of: 34 },
  ],
  [
    'Engine 000: Avg prompt throughput: 12068.8 tokens/s, Avg generation throughput: 734.9 tokens/s, Running: 18 reqs, Waiting: 33 reqs, GPU KV cache usage: 87.5%, Prefix cache hit rate: 0.0%',
    { kind: 'decode', running: 18, queued: 33, usage: 0.875, generated: 734.9, prompted: 12_068.8 },
  ],
  [
    'Avg prompt throughput: 67.0 tokens/s, Avg generation throughput: 0.4 tokens/s, Running: 2 reqs, Swapped: 0 reqs, Pending: 12 reqs, GPU KV cache usage: 0.1%, CPU KV cache usage: 0.0%.',
    { kind: 'decode', running: 2, queued: 12, usage: 0.001, generated: 0.4, prompted: 67 },
  ],
  ['INFO:     Application startup complete.', { kind: 'ready' }],
  ['Starting to load model m...', undefined],
])('%s', (message, event) => {
  expect(parse(message)).toEqual(event);
});

it('takes any text', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void parse(text)));
});
