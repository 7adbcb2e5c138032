import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accountOf, verdictOf } from '../../test/support/diagnose-log.ts';
import { diagnose } from './diagnose.ts';

const GET_HEALTH = '[2026-02-01 10:00:30] INFO:     127.0.0.1:51234 - "GET /health HTTP/1.1" 200 OK';
const CAPACITY =
  '[2026-02-01 10:00:00 TP0] max_total_num_tokens=159277, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=5.47 GB';
const UVICORN = '[2026-02-01 10:00:01] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)';
const READY = '[2026-02-01 10:00:09] The server is fired up and ready to roll!';
const PROBE =
  '[2026-02-01 10:00:20 TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, ';

function decode(at: string, running: number, queued: number, usage: number, generated: number): string {
  return `[2026-02-01 ${at} TP0] Decode batch, #running-req: ${running}, #token: ${Math.round(usage * 159_277)}, token usage: ${usage.toFixed(2)}, cuda graph: True, gen throughput (token/s): ${generated.toFixed(2)}, #queue-req: ${queued}, `;
}

function stats(at: string, running: number, queued: number, usage: number, generated: number): string {
  return `(APIServer pid=1) INFO 02-01 ${at} [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: ${generated.toFixed(1)} tokens/s, Running: ${running} reqs, Waiting: ${queued} reqs, GPU KV cache usage: ${usage.toFixed(1)}%, Prefix cache hit rate: 0.0%`;
}

function said(lines: readonly string[], isSilent = false) {
  const { state, cause, phase } = verdictOf(`${lines.join('\n')}\n`, isSilent);
  return { state, cause, phase };
}

function at(lines: readonly string[], now: string) {
  const time = Date.parse(`${now.replace(' ', 'T')}Z`);
  const { state, cause } = diagnose([{ file: '', account: accountOf(`${lines.join('\n')}\n`, time) }], { now: time });
  return { state, cause };
}

describe('the two probe outputs of the story', () => {
  it('an empty health body and graphs captured on all eight ranks at 3.52 GB: still initializing, not crashed', () => {
    const captured = Array.from(
      { length: 8 },
      (_, rank) =>
        `[2026-02-01 10:00:00 TP${rank}] Capture cuda graph end. Time elapsed: 31.20 s. mem usage=2.31 GB. avail mem=3.52 GB.`,
    );
    const verdict = verdictOf(`=== health ===\n\n=== log ===\n${captured.join('\n')}\n`);
    expect(verdict).toMatchObject({
      state: 'initializing',
      phase: 'cuda-graph-capture',
      cause: 'none',
      facts: { freeAfterGraphsGiB: 3.52 },
    });
  });

  it('a capacity of 159,277 tokens and nothing but the health probe’s own prefill: ready, idle', () => {
    expect(verdictOf(`${[CAPACITY, UVICORN, PROBE, GET_HEALTH, PROBE].join('\n')}\n`)).toMatchObject({
      ...{ state: 'ready', phase: '', cause: 'none' },
      facts: { poolTokens: 159_277, freeAfterGraphsGiB: 5.47 },
    });
    expect(said([CAPACITY, PROBE])).toEqual({ state: 'ready', phase: '', cause: 'none' });
  });
});

describe('a healthy server', () => {
  it('is ready, and idle for hours', () => {
    expect(said([CAPACITY, UVICORN, READY, PROBE, GET_HEALTH], true)).toEqual({ state: 'ready', phase: '', cause: 'none' });
  });

  it('serves, and was idle between', () => {
    expect(said([READY, decode('10:01:00', 1, 0, 0.01, 0.26), decode('10:01:02', 40, 0, 0.4, 900)])).toMatchObject({
      state: 'serving',
      cause: 'none',
    });
  });

  it('is not alarmed by words: error, failed, killed, out of memory in a warning', () => {
    const words = [
      '[2026-02-01 09:59:00] WARNING server_args.py:1: Falling back: error: failed to import deep_gemm, undefined symbol in fallback',
      '[2026-02-01 09:59:01 TP0] Ignore import error when loading sglang.srt.models.x: cannot open shared object file',
      'INFO 02-01 09:59:02 [model_runner.py:1] If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization`',
      '[2026-02-01 09:59:03] INFO:     10.0.0.1:4 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
      '[rank0]:[W1 ProcessGroupNCCL.cpp:1] Warning: destroy_process_group() was not called before program exit',
    ];
    expect(said([...words, CAPACITY, READY, decode('10:01:02', 40, 0, 0.4, 900)])).toMatchObject({
      state: 'serving',
      cause: 'none',
    });
    expect(said([CAPACITY, ...words]).state).not.toBe('crashed');
  });

  it('logs requests with their prompts, whatever people ask about', () => {
    const prompts = [
      "[2026-02-01 10:00:40] Receive: obj=GenerateReqInput(rid='a', text='Why torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB? Traceback (most recent call last): EngineDeadError Segmentation fault (core dumped)')",
      "INFO 02-01 10:00:41 [logger.py:39] Received request chatcmpl-1: prompt: 'Scheduler hit an exception: NVRM: Xid (PCI:0000:43:00): 79, GPU has fallen off the bus', params: SamplingParams(n=1)",
    ];
    expect(said([CAPACITY, READY, ...prompts])).toMatchObject({ state: 'ready', cause: 'none' });
    expect(said([CAPACITY, READY, ...prompts, decode('10:01:02', 40, 0, 0.4, 900)])).toMatchObject({
      state: 'serving',
      cause: 'none',
    });
  });

  it('answered requests after an error, so it did not die of it', () => {
    const answers = Array.from(
      { length: 9 },
      (_, n) => `[2026-02-01 10:0${n}:30] INFO:     10.0.0.1:4 - "POST /generate HTTP/1.1" 200 OK`,
    );
    expect(
      said([READY, '[2026-02-01 10:00:10] TokenizerManager hit an exception: Traceback (most recent call last):', ...answers]),
    ).toMatchObject({ state: 'serving' });
  });

  it('had a health check that timed out in one long step, and worked on', () => {
    const missed =
      "[2026-02-01 10:01:30] Health check failed. Server couldn't get a response from detokenizer for last 20 seconds. tic start time: 10:01:09. last_heartbeat time: 10:01:05";
    expect(
      said([
        READY,
        decode('10:01:02', 40, 0, 0.4, 900),
        missed,
        decode('10:01:33', 40, 0, 0.4, 20),
        decode('10:01:35', 40, 0, 0.4, 900),
      ]),
    ).toMatchObject({ state: 'serving', cause: 'none' });
  });

  it('with a full queue and every slot of the pool reserved is no capped one', () => {
    const busy = Array.from({ length: 6 }, (_, n) => decode(`10:01:0${n}`, 35, 115, 0.7, 600));
    expect(said([CAPACITY, READY, ...busy])).toMatchObject({ state: 'serving', cause: 'none' });
  });
});

describe('a server at work that is not well', () => {
  it('one long request holds the pool', () => {
    const lines = ['10:00:00', '10:00:10', '10:00:20'].map((time, n) => stats(time, 1, 14, 76.5 + n / 10, 5.4));
    expect(said(lines)).toEqual({ state: 'degraded', cause: 'long-request-blocks-queue', phase: 'serving' });
  });

  it('runs requests at zero tokens a second, frozen', () => {
    const lines = [
      stats('10:00:00', 35, 100, 99, 118),
      ...['10:00:10', '10:00:20', '10:00:30'].map((time) => stats(time, 35, 115, 99, 0)),
    ];
    expect(said(lines)).toEqual({ state: 'hung', cause: 'worker-stuck-no-progress', phase: 'serving' });
  });

  it('retracts again and again, or once in a day', () => {
    const retraction = (time: string) =>
      `[2026-02-01 ${time} TP0] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_tokens_gained: 900, #new_token_ratio: 0.37 -> 0.55`;
    expect(
      said([
        READY,
        decode('10:01:02', 40, 3, 0.99, 900),
        retraction('10:01:03'),
        decode('10:01:04', 38, 5, 0.99, 900),
        retraction('10:01:05'),
      ]),
    ).toMatchObject({ state: 'degraded', cause: 'kv-pool-full-retraction' });
    const day = Array.from({ length: 100 }, (_, n) =>
      decode(`11:${String(Math.floor(n / 2)).padStart(2, '0')}:0${n % 2}`, 40, 0, 0.6, 900),
    );
    expect(said([READY, ...day.slice(0, 10), retraction('11:05:30'), ...day.slice(10)])).toMatchObject({
      state: 'serving',
      cause: 'none',
    });
  });
});

it('the first engine of vLLM says of a full cache that it preempts', () => {
  const preempted = (time: string) =>
    `WARNING 02-01 ${time} scheduler.py:1754] Sequence group 17 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. This can affect the end-to-end performance.`;
  expect(
    said([stats('10:00:00', 40, 3, 99, 900), preempted('10:00:03'), stats('10:00:10', 38, 5, 99, 900), preempted('10:00:12')]),
  ).toMatchObject({ state: 'degraded', cause: 'kv-pool-full-retraction' });
});

describe('silence, by a clock', () => {
  const bar = (time: string, done: number) => [
    `[2026-02-01 ${time} TP0] x`,
    `Loading safetensors checkpoint shards:  ${done}% Completed | ${done}/64 [00:03<00:04, 8.27it/s]`,
  ];
  const loading = ['[2026-02-01 10:00:00 TP0] Load weight begin. avail mem=94.14 GB', ...bar('10:00:30', 29)];

  it('is no hang within the phase’s own limit, and one beyond it', () => {
    expect(at(loading, '2026-02-01 10:05:00')).toEqual({ state: 'initializing', cause: 'none' });
    expect(at(loading, '2026-02-01 10:30:00')).toMatchObject({ state: 'hung' });
  });

  it('is longer where a first load may download, and where kernels are compiled', () => {
    expect(at(loading.slice(0, 1), '2026-02-01 10:20:00')).toMatchObject({ state: 'initializing' });
    const compiling = [
      '[2026-02-01 10:00:00 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=11.2 GB',
      '[2026-02-01 10:00:01 TP0] Entering DeepGEMM JIT Pre-Compile session.',
    ];
    expect(at(compiling, '2026-02-01 10:20:00')).toEqual({ state: 'initializing', cause: 'deepgemm-jit-warmup' });
    expect(at(compiling, '2026-02-01 10:40:00')).toMatchObject({ state: 'hung' });
  });

  it('of NCCL is its own cause, on one node and over two', () => {
    const begin = '[2026-02-01 10:00:00 TP0] Init torch distributed begin.';
    const using = '[2026-02-01 10:00:01 TP0] sglang is using nccl==2.27.5';
    expect(at([begin, using], '2026-02-01 10:10:00')).toEqual({ state: 'hung', cause: 'nccl-init-hang' });
    const ends = '[2026-02-01 10:00:05 TP0] Init torch distributed ends. mem usage=0.28 GB';
    const nodes =
      "[2026-02-01 09:59:00] server_args=ServerArgs(model_path='m', nnodes=2, node_rank=0, dist_init_addr='10.0.0.1:5000')";
    expect(at([nodes, begin, using, ends], '2026-02-01 10:10:00')).toEqual({ state: 'hung', cause: 'multi-node-comm-stall' });
  });

  it('is not judged without a clock, and the answer says so', () => {
    const verdict = verdictOf(`${loading.join('\n')}\n`);
    expect(verdict.state).toBe('initializing');
    expect(verdict.notes.join(' ')).toContain('--now');
  });

  it('with requests in flight is a hang, and with none it is rest', () => {
    expect(at([READY, decode('10:01:02', 40, 0, 0.4, 900)], '2026-02-01 10:20:00')).toEqual({
      state: 'hung',
      cause: 'worker-stuck-no-progress',
    });
    expect(at([stats('10:01:00', 3, 0, 2, 90), stats('10:01:10', 0, 0, 0, 12)], '2026-02-01 18:20:00')).toEqual({
      state: 'serving',
      cause: 'none',
    });
  });
});

describe('several starts, ranks and containers', () => {
  const crash = [
    '[2026-02-01 09:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):',
    'RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.',
  ];
  const args = "[2026-02-01 09:10:00] server_args=ServerArgs(model_path='m', mem_fraction_static=0.9)";

  it('a log with two starts is about the last one', () => {
    const verdict = verdictOf(`${[...crash, args, CAPACITY, READY].join('\n')}\n`);
    expect(verdict).toMatchObject({ state: 'ready', cause: 'none' });
    expect(verdict.notes.join(' ')).toContain('2 starts');
  });

  it('the first cause in time among ranks is the cause, whichever file names it', () => {
    const victim =
      '[2026-02-01 10:12:00 TP0] Scheduler hit an exception: Traceback\nRuntimeError: NCCL error: remote process exited or there was a network error\n';
    const culprit =
      '[2026-02-01 10:01:00 TP1] Scheduler hit an exception: Traceback\ntorch.AcceleratorError: CUDA error: an illegal memory access was encountered\n';
    const verdict = diagnose([
      { file: 'rank0.log', account: accountOf(victim) },
      { file: 'rank1.log', account: accountOf(culprit) },
    ]);
    expect(verdict).toMatchObject({ state: 'crashed', cause: 'cuda-illegal-memory-access' });
    expect(verdict.evidence[0]).toMatchObject({ file: 'rank1.log', line: 2 });
  });

  it('of two containers in one log the one that is not well speaks, by its own lines', () => {
    const lines = [
      'small-1  | (APIServer pid=1) INFO:     Application startup complete.',
      'large-1  | (EngineCore pid=9) INFO 02-01 10:00:00 [gpu_model_runner.py:1] Starting to load model org/m...',
      'Loading safetensors checkpoint shards:  60% Completed | 3/5 [05:06<03:26, 103.00s/it]',
      'small-1  | (APIServer pid=1) INFO:     10.0.0.9:4 - "POST /v1/completions HTTP/1.1" 200 OK',
      'small-1  | (APIServer pid=1) INFO:     10.0.0.9:4 - "POST /v1/completions HTTP/1.1" 200 OK',
    ];
    const verdict = verdictOf(`${lines.join('\n')}\n`);
    expect(verdict).toMatchObject({
      state: 'initializing',
      phase: 'weight-loading',
      cause: 'slow-storage',
      evidence: [{ line: 3 }],
    });
    expect(verdict.notes.join(' ')).toContain('small-1 serving, large-1 initializing (slow-storage)');
    const crash =
      'large-1  | (EngineCore pid=9) ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.';
    expect(verdictOf(`${[...lines, crash, ...lines.slice(3), ...lines.slice(3)].join('\n')}\n`)).toMatchObject({
      ...{ state: 'crashed', cause: 'weights-exceed-static-fraction', evidence: [{ line: 6 }] },
    });
  });

  it('one rank that hangs beside one that is ahead is what the start waits for', () => {
    const ahead =
      '[2026-02-01 10:00:40 TP0] Load weight end. type=X, dtype=torch.bfloat16, avail mem=21.82 GB, mem usage=72.33 GB.\n';
    const behind = '[2026-02-01 10:00:01 TP1] sglang is using nccl==2.27.5\n';
    const verdict = diagnose([
      { file: 'a', account: accountOf(ahead) },
      { file: 'b', account: accountOf(behind) },
    ]);
    expect(verdict).toMatchObject({ state: 'initializing', phase: 'distributed-init' });
  });
});

it('gives a verdict for any bytes', () => {
  const words = fc.constantFrom(
    CAPACITY,
    READY,
    PROBE,
    'Traceback (most recent call last):',
    'CUDA out of memory. Tried to allocate',
    '\r',
    '\u001b[1m',
    'Decode batch',
    '"POST /generate HTTP/1.1" 200',
    'a  | x',
    '[20',
    ': 3/5 [00:01<00:02, 5s/it]',
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(words, fc.string({ unit: 'binary' })), { maxLength: 12 }), fc.boolean(), (lines, isSilent) => {
      expect(verdictOf(lines.join('\n'), isSilent).cause).toMatch(/^[a-z0-9-]+$/);
    }),
  );
});

describe('a log that is none', () => {
  it.each([
    ['nothing', ''],
    ['prose', 'hello\nworld\n'],
    ['bytes', '\u0000\u0001\u0002\n'.repeat(50)],
  ])('%s: unknown, and says what was looked at', (_, text) => {
    const verdict = verdictOf(text);
    expect(verdict).toMatchObject({ state: 'initializing', cause: 'unknown', confidence: 'low' });
    expect(verdict.notes.length).toBeGreaterThan(0);
  });
});

describe('a remedy', () => {
  it('computes the flag from the figures of the log', () => {
    const log = [
      "[2026-02-01 10:00:00] server_args=ServerArgs(model_path='m', mem_fraction_static=0.93, chunked_prefill_size=8192)",
      '[2026-02-01 10:00:01 TP0] Load weight begin. avail mem=94.04 GB',
      CAPACITY.replace('5.47', '0.82'),
      READY,
      '[2026-02-01 10:02:00 TP0] Scheduler hit an exception: Traceback (most recent call last):',
      '  File "/srv/sglang/srt/managers/scheduler.py", line 9, in run_batch',
      'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB.',
    ];
    // 2.5 GiB that a prefill needs, less 0.82 that were left, of 94.04: 0.02 of the GPU.
    expect(verdictOf(log.join('\n')).remedy).toMatchObject({ flag: '--mem-fraction-static', value: '0.91' });
  });

  it('takes the number that the engine names, and lets the capacity model speak', () => {
    const log =
      "ValueError: To serve at least one request with the model's max seq len (65536), (4.76 GiB KV cache is needed, which is larger than the available KV cache memory (1.56 GiB). Based on the available memory, the estimated maximum model length is 15984.\n(EngineCore pid=1) x";
    const verdict = diagnose([{ file: '', account: accountOf(log) }], { checkRemedy: ({ value }) => `It fits: ${value}.` });
    expect(verdict.remedy).toMatchObject({
      flag: '--max-model-len',
      value: '15984',
      text: expect.stringContaining('It fits: 15984.'),
    });
  });
});
