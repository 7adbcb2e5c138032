/** Servers that answer: told from the figures they print, by `judge-load.ts`. None of these has a text of its own. */
import { advise, byEngine, type Rule } from '../rule.ts';

const SERVING = { weight: 'root', signs: [], phase: 'serving' } as const;

export const LOAD_RULES: readonly Rule[] = [
  {
    ...SERVING,
    code: 'kv-cache-saturated',
    title: 'the KV cache is full and requests wait for it',
    state: 'degraded',
    restartSameFlagsHelps: false,
    remedy: ({ facts }) => ({
      flag: byEngine(facts, '--mem-fraction-static', '--gpu-memory-utilization'),
      value: '',
      text: 'The server is sound and works at its limit. More room: a higher memory fraction if memory is left, more GPUs, no draft model; a smaller KV type only where the model’s owner allows it. Or ask for fewer requests at once.',
    }),
    meaning: 'The pool holds only so many requests of this length; the others wait.',
    mistakenFor: 'a slow server',
    example:
      'Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 1210.0 tokens/s, Running: 24 reqs, Waiting: 51 reqs, GPU KV cache usage: 97.2%, Prefix cache hit rate: 0.0%',
  },
  {
    ...SERVING,
    code: 'max-num-seqs-cap',
    title: 'requests wait although the cache has room: the cap on sequences',
    state: 'degraded',
    restartSameFlagsHelps: null,
    remedy: ({ facts }) => ({
      flag: byEngine(facts, '--max-running-requests', '--max-num-seqs'),
      value: facts.samples.length === 0 ? '' : String(2 * Math.max(...facts.samples.slice(-100).map(({ running }) => running))),
      text: 'Raise the cap on running sequences (for hybrid models only as far as their state blocks go).',
    }),
    meaning: 'As many requests run as the cap allows, and the cache is not full.',
    mistakenFor: 'a full cache or a slow card',
    example:
      'Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 512.0 tokens/s, Running: 8 reqs, Waiting: 24 reqs, GPU KV cache usage: 31.0%, Prefix cache hit rate: 0.0%',
  },
  {
    ...SERVING,
    code: 'prefill-bound',
    title: 'almost all time goes into prompts, and the queue falls',
    state: 'serving',
    restartSameFlagsHelps: null,
    remedy: advise(
      'Healthy. Faster only with more prefill (more GPUs, a separate prefill server), shorter prompts, or reuse of common prefixes.',
    ),
    meaning: 'Many long prompts came at once; they are computed at full speed, and answers come later.',
    mistakenFor: 'a hang: hardly a token is generated and many requests wait',
    example:
      'Engine 000: Avg prompt throughput: 18000.0 tokens/s, Avg generation throughput: 12.0 tokens/s, Running: 12 reqs, Waiting: 60 reqs, GPU KV cache usage: 25.0%, Prefix cache hit rate: 0.0%',
  },
  {
    ...SERVING,
    code: 'request-runs-to-token-cap',
    title: 'one request generates without end, up to its token cap',
    state: 'serving',
    restartSameFlagsHelps: false,
    remedy: advise(
      'The server is well. Set max_tokens, switch thinking off, or change the sampling (a temperature of 0 repeats itself).',
    ),
    meaning: 'A single request has been generating thousands of tokens at full speed.',
    mistakenFor: 'a hang: the client waits and nothing comes back',
    example:
      'Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 180.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.4%, Prefix cache hit rate: 0.0%',
  },
  {
    ...SERVING,
    code: 'long-request-blocks-queue',
    title: 'one long request holds most of the pool',
    state: 'degraded',
    restartSameFlagsHelps: null,
    remedy: ({ facts }) => ({
      flag: byEngine(facts, '--context-length', '--max-model-len'),
      value: '',
      text: 'Cap the length of one request, or give long requests a server of their own; the queue moves when it ends.',
    }),
    meaning: 'The pool is mostly one request’s; the others do not fit beside it.',
    mistakenFor: 'a hang of the scheduler',
    example:
      'Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 21.0 tokens/s, Running: 1 reqs, Waiting: 6 reqs, GPU KV cache usage: 82.0%, Prefix cache hit rate: 0.0%',
  },
  {
    ...SERVING,
    code: 'throughput-collapse',
    title: 'the engine works and is far too slow, without any lack of room',
    state: 'degraded',
    restartSameFlagsHelps: false,
    remedy: advise(
      'Compare with one request alone. Look at the kernels: weights in a format with slow kernels (GGUF), graphs switched off, a backend not made for this GPU, power or thermal limits (nvidia-smi -q -d PERFORMANCE).',
    ),
    meaning: 'Less than a token a second for each request, with a nearly empty cache and no queue.',
    mistakenFor: 'a full pool or a hang',
    example:
      'Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.7 tokens/s, Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.1%, Prefix cache hit rate: 0.0%',
  },
  {
    ...SERVING,
    code: 'slow-engine-steps',
    title: 'single steps take more than a minute, yet requests finish',
    state: 'degraded',
    restartSameFlagsHelps: null,
    remedy: ({ facts }) => ({
      flag: byEngine(facts, '--chunked-prefill-size', '--max-num-batched-tokens'),
      value: facts.chunkedPrefill === undefined ? '' : String(Math.floor(facts.chunkedPrefill / 2)),
      text: 'Not a hang. Warm up the shapes that are used (first ones compile), put fewer tokens into one batch, and measure again.',
    }),
    meaning: 'The engine waits for its workers for a minute and more, and then they answer.',
    mistakenFor: 'workers that hang: the notice is the same, but requests finish between',
    example:
      'No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation).',
  },
  {
    ...SERVING,
    code: 'scheduler-not-admitting',
    title: 'requests queue up, nothing runs, and the cache is empty',
    state: 'hung',
    restartSameFlagsHelps: null,
    remedy: advise(
      'Start it again without the newest scheduling feature that is on (multi-step, chunked prefill together with it, a plug-in), or with another version. Do not trust /health: it answers 200.',
    ),
    meaning: 'The scheduler admits nothing although everything is free: a fault of its own.',
    mistakenFor: 'an idle server',
    example:
      'Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 0 reqs, Swapped: 0 reqs, Pending: 22 reqs, GPU KV cache usage: 0.0%, CPU KV cache usage: 0.0%.',
  },
  {
    ...SERVING,
    code: 'worker-stuck-no-progress',
    title: 'requests run at zero tokens a second, and the cache is frozen',
    state: 'hung',
    restartSameFlagsHelps: true,
    remedy: advise(
      'Dump the stacks of the workers (py-spy dump --pid), look for Xid in dmesg and at the other nodes, and start again.',
    ),
    meaning: 'The engine counts requests as running, none of them gets a token, and no message says why.',
    mistakenFor: 'an idle or a slow server',
    example:
      'Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, Running: 4 reqs, Waiting: 0 reqs, GPU KV cache usage: 12.5%, Prefix cache hit rate: 0.0%',
  },
];
