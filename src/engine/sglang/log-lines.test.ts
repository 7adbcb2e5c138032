/** Lines as the versions named beside them print them; figures from public logs. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseSglangMessage as parse } from './log-lines.ts';

describe('start-up', () => {
  it.each([
    ['Load weight begin. avail mem=94.14 GB', { kind: 'weights-begin', freeGiB: 94.14 }],
    [
      'Load weight end. type=KimiK25ForConditionalGeneration, dtype=torch.bfloat16, avail mem=21.82 GB, mem usage=72.33 GB.', // ≤ 0.5.8
      { kind: 'weights-end', usedGiB: 72.33, freeGiB: 21.82 },
    ],
    [
      'Load weight end. elapsed=85.78 s, type=X, quant=fp8, fmt=e4m3, avail mem=12.25 GB, mem usage=125.65 GB.', // ≥ 0.5.12
      { kind: 'weights-end', usedGiB: 125.65, freeGiB: 12.25 },
    ],
    [
      'Loading safetensors checkpoint shards:  45% Completed | 29/64 [00:03<00:04,  8.27it/s]',
      { kind: 'weights-progress', done: 29, of: 64 },
    ],
    ['Using KV cache dtype: torch.float8_e4m3fn', { kind: 'kv-dtype', dtype: 'torch.float8_e4m3fn' }],
    ['KV Cache is allocated. #tokens: 159277, KV size: 10.42 GB', { kind: 'pool', tokens: 159_277, poolGiB: 10.42, dtype: '' }],
    [
      'KV Cache is allocated. dtype: torch.bfloat16, #tokens: 102292, K size: 3.41 GB, V size: 3.41 GB', // ≥ 0.5.13
      { kind: 'pool', tokens: 102_292, poolGiB: 6.82, dtype: 'torch.bfloat16' },
    ],
    ['KV Cache is allocated. K size: 2.82 GB, V size: 2.82 GB.', { kind: 'pool-size', poolGiB: 5.64 }], // 0.4
    ['KV Cache VA upper bound. dtype: torch.bfloat16, #tokens: 102292, KV size: 3.41 GB', undefined],
    ['Memory pool end. avail mem=19.72 GB', { kind: 'pool-end', freeGiB: 19.72 }],
    ['Allocating 48.00 GB host memory for hierarchical KV cache.', { kind: 'host-pool', hostGiB: 48 }],
    [
      'Capture cuda graph begin. This can take up to several minutes. avail mem=11.20 GB',
      { kind: 'graphs-begin', stage: 'decode', freeGiB: 11.2 },
    ],
    [
      'Capture cuda graph end. Time elapsed: 31.20 s. mem usage=2.31 GB. avail mem=8.90 GB.',
      { kind: 'graphs-end', stage: 'decode', usedGiB: 2.31, freeGiB: 8.9 },
    ],
    [
      'Capture piecewise CUDA graph end. Time elapsed: 9.00 s. mem usage=1.00 GB. avail mem=7.00 GB.',
      { kind: 'graphs-end', stage: 'prefill', usedGiB: 1, freeGiB: 7 },
    ],
    [
      'Capture target decode CUDA graph end. elapsed=9.00 s, mem usage=1.00 GB, avail mem=7.00 GB.',
      { kind: 'graphs-end', stage: 'decode', usedGiB: 1, freeGiB: 7 },
    ], // ≥ 0.5.14
    ['Capture draft extend cuda graph begin. avail mem=7.00 GB', { kind: 'graphs-begin', stage: 'draft', freeGiB: 7 }],
    [
      'Capturing batches (bs=512 avail_mem=8.97 GB):  12%|█▏        | 6/52 [00:02<00:11,  4.06it/s]',
      { kind: 'graphs-progress', done: 6, of: 52 },
    ],
    [
      'max_total_num_tokens=4578, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=19.71 GB',
      {
        kind: 'capacity',
        poolTokens: 4578,
        chunkedPrefill: 8192,
        maxRunningRequests: 2048,
        contextTokens: 262_144,
        freeGiB: 19.71,
      },
    ],
    [
      'max_total_num_tokens=15387, chunked_prefill_size=2048, max_prefill_tokens=16384, max_running_requests=2049, context_len=40960', // ≤ 0.4.9
      { kind: 'capacity', poolTokens: 15_387, chunkedPrefill: 2048, maxRunningRequests: 2049, contextTokens: 40_960 },
    ],
    ['The server is fired up and ready to roll!', { kind: 'ready' }],
  ])('%s', (message, event) => {
    expect(parse(message)).toEqual(event);
  });

  it('reads the scalar flags out of the line with all of them', () => {
    const line = `server_args=ServerArgs(model_path='m/Kimi', tp_size=8, mem_fraction_static=0.7714564062499999, kv_cache_dtype='auto', cuda_graph_bs=[1, 2], api_key=None)`;
    expect(parse(line)).toEqual({
      kind: 'arguments',
      values: {
        model_path: 'm/Kimi',
        tp_size: '8',
        mem_fraction_static: '0.7714564062499999',
        kv_cache_dtype: 'auto',
        api_key: 'None',
      },
    });
  });
});

describe('at work', () => {
  it.each([
    [
      'Decode batch. #running-req: 35, #token: 150000, token usage: 0.94, cuda graph: True, gen throughput (token/s): 600.12, #queue-req: 115, ', // ≤ 0.5.3
      { kind: 'decode', running: 35, queued: 115, usage: 0.94, generated: 600.12, tokens: 150_000 },
    ],
    [
      'Decode batch [40], #running-req: 1, #token: 69, token usage: 0.02, cuda graph: False, gen throughput (token/s): 0.26, #queue-req: 0', // 0.5.4
      { kind: 'decode', running: 1, queued: 0, usage: 0.02, generated: 0.26, tokens: 69 },
    ],
    [
      'Decode batch, #running-req: 8, #full token: 900, full token usage: 0.10, #swa token: 90, swa token usage: 0.01, accept len: 2.31, accept rate: 0.58, cuda graph: True, gen throughput (token/s): 90.50, #queue-req: 3',
      { kind: 'decode', running: 8, queued: 3, usage: 0.1, generated: 90.5, tokens: 900 },
    ],
    [
      'Prefill batch, #new-seq: 1, #new-token: 44, #cached-token: 12, token usage: 0.00, #running-req: 7, #queue-req: 2, input throughput (token/s): 12.5, cuda graph: False', // 0.5.9
      { kind: 'prefill', newTokens: 44, cachedTokens: 12, running: 7, queued: 2 },
    ],
    [
      'KV cache pool is full. Retract requests. #retracted_reqs: 3, #new_token_ratio: 0.0980 -> 0.4012',
      { kind: 'retraction', requests: 3 },
    ],
    ['Decode out of memory happened. #retracted_reqs: 1, #new_token_ratio: 0.5 -> 0.6', { kind: 'retraction', requests: 1 }],
  ])('%s', (message, event) => {
    expect(parse(message)).toEqual(event);
  });
});

it('takes any text, and knows none of it', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void parse(text)));
  expect(parse('Attention backend not specified. Use triton backend by default.')).toBeUndefined();
});
