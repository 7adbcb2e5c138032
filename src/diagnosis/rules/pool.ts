/** The KV pool while serving: full, leaking, or short of something that is not tokens. None of these is a CUDA out of memory. */
import { advise, byEngine, type Rule } from '../rule.ts';

export const POOL_RULES: readonly Rule[] = [
  {
    code: 'kv-pool-full-retraction',
    title: 'the KV pool is full and requests are sent back to the queue',
    state: 'degraded',
    weight: 'root',
    signs: [
      'KV cache pool is full. Retract requests',
      'Decode out of memory happened',
      'is preempted by PreemptionMode',
      '#retracted_reqs: {retracted}',
    ],
    phase: 'serving',
    restartSameFlagsHelps: false,
    remedy: ({ facts }) => {
      const limit = facts.maxRunningRequests;
      const running =
        facts.samples.length === 0 ? undefined : Math.max(...facts.samples.slice(-100).map((sample) => sample.running));
      return {
        flag: '--max-running-requests',
        value: running === undefined ? '' : String(Math.max(1, Math.floor(Math.min(running, limit ?? running) * 0.9))),
        text: 'Ask for fewer requests at once, raise --schedule-conservativeness (1.3 to 2), or enlarge the pool. Each retraction throws work away; a rare one is harmless.',
      };
    },
    meaning:
      'More requests were admitted than the pool can hold to their end. One is thrown back and prefilled again later. The server goes on.',
    mistakenFor: 'a GPU out of memory: the older wording says so, and nothing has crashed',
    example: 'KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.3710 -> 0.5544',
  },
  {
    code: 'kv-pool-full-single-request',
    title: 'one request alone does not fit the KV pool',
    state: 'crashed',
    weight: 'root',
    signs: [
      'Out of memory even after retracting all other requests',
      'retract_decode: aborted last request',
      'No space left in the KV pool for a single request',
    ],
    phase: 'serving',
    restartSameFlagsHelps: false,
    remedy: ({ facts }) => ({
      flag: '--context-length',
      value: facts.poolTokens === undefined ? '' : String(facts.poolTokens),
      text: 'Cap what one request may generate (max_new_tokens) or the context length below the pool, or enlarge the pool.',
    }),
    meaning:
      'All other requests were sent back and the last one still cannot grow. Versions to 0.5.9 die of it; later ones end that request.',
    mistakenFor: 'too many requests at once: lowering concurrency does not help a single one',
    example: 'ValueError: Out of memory even after retracting all other requests in the decode batch.',
  },
  {
    code: 'decode-oom-page-size',
    title: 'no free page is left although tokens are',
    state: 'crashed',
    weight: 'root',
    signs: [
      'Decode out of memory. Try to lower your batch size',
      'alloc_token_slots{}Decode out of memory',
      'alloc_paged_token_slots_decode',
    ],
    phase: 'serving',
    restartSameFlagsHelps: null,
    remedy: ({ facts }) => ({
      flag: '--page-size',
      value: '1',
      text: `Use a smaller page if the attention backend allows it, or fewer requests at once (${byEngine(facts, '--max-running-requests', '--max-num-seqs')}); upgrade, because admission should have prevented this.`,
    }),
    meaning:
      'Each running request needed a new page in the same step, and free tokens were scattered over pages that were not free.',
    mistakenFor: 'a full pool or a GPU out of memory',
    example:
      'RuntimeError: Decode out of memory. Try to lower your batch size. Try to allocate 64 tokens. Available tokens: 3120',
  },
  {
    code: 'prefill-pool-exhausted',
    title: 'a prefill was admitted that the pool cannot hold',
    state: 'crashed',
    weight: 'root',
    signs: ['Prefill out of memory. Try to lower your batch size'],
    phase: 'serving',
    restartSameFlagsHelps: null,
    remedy: ({ facts }) => ({
      flag: '--chunked-prefill-size',
      value: facts.chunkedPrefill === undefined ? '' : String(Math.floor(facts.chunkedPrefill / 2)),
      text: 'Upgrade (the scheduler’s account of the pool was wrong), halve the chunk, or switch the radix cache or overlap off to find which part is at fault.',
    }),
    meaning: 'The scheduler admitted a prefill and the allocator had no room: an accounting error, or a leak.',
    mistakenFor: 'a GPU out of memory',
    example:
      'RuntimeError: Prefill out of memory. Try to lower your batch size. Try to allocate 8192 tokens. Available tokens: 6144',
  },
  {
    code: 'req-slots-exhausted',
    title: 'the table of request slots is full although the pool is not',
    state: 'crashed',
    weight: 'root',
    signs: [
      'alloc_req_slots runs out of memory',
      'Please set a smaller number for `--max-running-requests`',
      'req_to_token_pool.available_size()=0',
      'Not enough space for mamba cache',
      'out of request slots',
    ],
    phase: 'serving',
    restartSameFlagsHelps: true,
    remedy: ({ facts }) => ({
      flag: byEngine(facts, '--max-running-requests', '--max-num-seqs'),
      value: facts.maxRunningRequests === undefined ? '' : String(Math.max(1, Math.floor(facts.maxRunningRequests / 2))),
      text: 'Set the limit of running requests explicitly, below the number of slots; upgrade, because requests that ended keep their slot in some versions.',
    }),
    meaning: 'Every running request needs a slot of its own (and a state, in hybrid models); none was free.',
    mistakenFor: 'a full KV pool: usage is low when it happens',
    example:
      'RuntimeError: alloc_req_slots runs out of memory. Please set a smaller number for `--max-running-requests`. req_to_token_pool.available_size()=3, num_reqs=8,',
  },
  {
    code: 'kv-accounting-leak',
    title: 'the idle check finds that the pool’s sums do not match',
    state: 'crashed',
    weight: 'root',
    signs: [
      'memory leak detected!',
      'pool memory leak detected',
      'KV cache pool leak detected',
      'token_to_kv_pool_allocator memory leak',
    ],
    phase: 'serving',
    restartSameFlagsHelps: true,
    remedy: advise(
      'Start it again (it comes back sooner or later) and upgrade; if speculative decoding, a hybrid pool or the hierarchical cache is on, switch that off.',
    ),
    meaning:
      'When SGLang is idle it adds up free, cached and protected slots. Some are missing or counted twice: a bookkeeping fault, not lost memory.',
    mistakenFor: 'a memory leak of the GPU or the host',
    example:
      'ValueError: token_to_kv_pool_allocator memory leak detected! available_size=159213, protected_size=0, self.max_total_num_tokens=159277',
  },
];
