import { describe, expect, it } from 'vitest';
import { LogFactsReader } from './log-facts.ts';

/** A public log of Kimi-K2.5 on eight cards, its memory fraction left to the engine; two ranks of it. */
const START = [
  "[2026-01-30 01:13:04] server_args=ServerArgs(model_path='m/Kimi-K2.5', mem_fraction_static=0.7714564062499999, kv_cache_dtype='auto')",
  '[2026-01-30 01:13:16 TP0] Load weight begin. avail mem=94.14 GB',
  '[2026-01-30 01:13:16 TP1] Load weight begin. avail mem=94.20 GB',
  '[2026-01-30 01:14:42 TP1] Load weight end. elapsed=85.78 s, type=K, dtype=torch.bfloat16, avail mem=21.90 GB, mem usage=72.30 GB.',
  '[2026-01-30 01:14:42 TP0] Load weight end. elapsed=85.78 s, type=K, dtype=torch.bfloat16, avail mem=21.82 GB, mem usage=72.33 GB.',
  '[2026-01-30 01:14:53 TP0] Using KV cache dtype: torch.bfloat16',
  '[2026-01-30 01:14:53 TP0] KV Cache is allocated. #tokens: 4578, KV size: 0.30 GB',
  '[2026-01-30 01:14:53 TP0] Memory pool end. avail mem=19.72 GB',
  '[2026-01-30 01:14:54 TP0] max_total_num_tokens=4578, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=19.71 GB',
  '[2026-01-30 01:15:03] The server is fired up and ready to roll!',
];
const DECODE =
  '[2026-01-30 01:15:44 TP0] Decode batch, #running-req: 1, #token: 69, token usage: 0.02, cuda graph: False, gen throughput (token/s): 0.26, #queue-req: 0, ';

function read(lines: readonly string[]) {
  const reader = new LogFactsReader();
  for (const line of lines) reader.add(line);
  return reader.read();
}

describe('LogFactsReader', () => {
  it('finds every figure of a start, of the rank that has the least room', () => {
    expect(read([...START, DECODE])).toMatchObject({
      ...{ engine: 'sglang', freeBeforeLoadGiB: 94.14, freeAfterLoadGiB: 21.82, weightsGiBPerGpu: 72.33 },
      ...{ poolTokens: 4578, poolGiB: 0.3, freeAfterPoolGiB: 19.72, freeAfterGraphsGiB: 19.71 },
      ...{
        maxRunningRequests: 2048,
        contextTokens: 262_144,
        chunkedPrefill: 8192,
        kvCacheDtype: 'torch.bfloat16',
        isReady: true,
      },
      arguments: { mem_fraction_static: '0.7714564062499999' },
      samples: [{ line: 11, running: 1, queued: 0, usage: 0.02, generated: 0.26, tokens: 69 }],
    });
  });

  it('finds the capacity however far it stands from the tail', () => {
    const noise = Array.from(
      { length: 5000 },
      () => '[2026-01-30 01:15:03] INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK',
    );
    expect(read([...START, ...noise])).toMatchObject({ poolTokens: 4578, lines: 5010 });
  });

  it('takes the later start where a log holds two', () => {
    const second = START.map((line) => line.replace('94.14', '90.00').replace('94.20', '90.00').replaceAll('4578', '2000'));
    expect(read([...START, DECODE, ...second])).toMatchObject({ freeBeforeLoadGiB: 90, poolTokens: 2000, samples: [] });
  });

  it('keeps a bounded number of readings of a long run, spread over all of it', () => {
    const { samples } = read([...START, ...Array.from({ length: 50_000 }, () => DECODE)]);
    expect(samples.length).toBeLessThan(10_000);
    expect(samples.length).toBeGreaterThan(4_000);
    expect(samples.at(-1)?.line).toBeGreaterThan(50_000);
  });

  it('says of a log without figures that it has none', () => {
    expect(read(['hello', 'world'])).toEqual({ lines: 2, arguments: {}, isReady: false, retractions: 0, samples: [] });
  });
});
