/**
 * A GPU out of memory, told apart by where it happened: before the pool, while the pool is made, and after it want opposite
 * remedies. The texts are the same everywhere; the frames above them or the phase decide.
 */
import { advise, byEngine, fractionOf, type RemedyFacts, type Rule } from '../rule.ts';
import type { Remedy } from '../verdict.ts';
import { CAPTURE_FRAMES, LOAD_FRAMES, POOL_FRAMES, PROFILE_FRAMES, SERVE_FRAMES } from './frames.ts';

/** Every way in which an engine says that the GPU has no room for an allocation. */
export const OUT_OF_MEMORY = [
  'out of memory. Tried to allocate {tried} GiB',
  'CUDA out of memory. Tried to allocate',
  'OutOfMemoryError: CUDA out of memory',
  'CUDA out of memory occurred',
  'CUDA error: out of memory',
  'HIP out of memory. Tried to allocate',
  'XPU out of memory',
  'cuMemCreate failed{}out of memory',
] as const;

/** No memory fraction leaves so much free: the batch itself is too large. */
const HUGE_GIB = 16;
/** What SGLang's prefill of one chunk of 8,192 tokens needs on a large mixture of experts, in GiB. */
const PREFILL_NEEDS_GIB = 2.5;

export const OUT_OF_MEMORY_RULES: readonly Rule[] = [
  {
    code: 'rl-resume-memory-oom',
    title: 'memory that was lent to the trainer cannot be taken back',
    state: 'crashed',
    weight: 'root',
    signs: [
      '[torch_memory_saver{}] CUresult error: {}(out of memory)',
      'torch_memory_saver{}out of memory',
      'cumem_allocator{}out of memory',
      'CUDA Error: out of memory at {}cumem_allocator',
      ...OUT_OF_MEMORY.map((text) => ({ text })),
    ],
    where: {
      near: [
        'torch_memory_saver',
        'cumem',
        'in resume_memory_occupation',
        'release_memory_occupation',
        'in wake_up',
        'memory_saver_adapter',
      ],
    },
    phase: 'serving',
    restartSameFlagsHelps: false,
    remedy: ({ facts }) => ({
      flag: byEngine(facts, '--mem-fraction-static', '--gpu-memory-utilization'),
      value: lowered(facts, 0.1),
      text: 'Let the trainer give back its memory before the resume (offload optimizer and parameters), resume weights and KV cache in two steps, and give the inference engine a smaller share.',
    }),
    meaning:
      'Training and inference share a GPU. When the inference engine wakes up, the memory it had lent is not free yet, and its memory saver ends the process without a Python traceback.',
    mistakenFor:
      'a time-out of the trainer’s request, or a network fault: the trainer only sees that resume_memory_occupation does not answer',
    example: '[torch_memory_saver.cpp] CUresult error: 2 (out of memory)  file=csrc/utils.h func=cu_mem_create line=194',
  },
  {
    code: 'req-to-token-table-oom',
    title: 'the request-to-token table is too large',
    state: 'crashed',
    weight: 'root',
    signs: OUT_OF_MEMORY,
    where: { near: ['ReqToTokenPool', 'self.req_to_token =', 'req_to_token = torch'] },
    phase: 'kv-pool-allocation',
    restartSameFlagsHelps: false,
    remedy: ({ facts }) => ({
      flag: '--max-running-requests',
      value: '256',
      text: tableText(facts.contextTokens, facts.maxRunningRequests),
    }),
    meaning:
      'SGLang keeps a table of context length × max running requests × 4 bytes on each GPU, outside the static fraction. A long context with the default number of requests makes it several GiB. The KV pool has no part in it.',
    mistakenFor: 'a KV pool that is too large: lowering the memory fraction helps little',
    example:
      '    self.req_to_token = torch.zeros(\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 16.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 9.44 GiB is free.',
  },
  {
    code: 'attention-workspace-oom',
    title: 'the workspace of the attention backend does not fit beside the pool',
    state: 'crashed',
    weight: 'root',
    signs: [
      ...OUT_OF_MEMORY,
      'Buffer overflow when allocating memory for {} bytes available in AlignedAllocator',
      'Failed to allocate memory for {}AlignedAllo',
      'Out of workspace memory in AlignedAllo',
      'Workspace buffer is too small',
      'Workspace is locked but allocation',
      'Increase the workspace buffer size',
    ],
    where: {
      near: [
        'workspace_buffer',
        'workspace buffer',
        'float_workspace',
        'Workspace is locked',
        'layers/attention/{}in __init__',
        'AlignedAllocator',
        'init_attention_backend',
        'workspace_size',
      ],
    },
    phase: 'attention-backend-init',
    restartSameFlagsHelps: false,
    remedy: ({ facts }) => ({
      flag: byEngine(facts, '--mem-fraction-static', '--gpu-memory-utilization'),
      value: lowered(facts, 0.03),
      text: 'Leave room for the workspace (128 to 512 MiB a backend): lower the memory fraction a little, set the workspace size of the backend, or use another --attention-backend.',
    }),
    meaning: 'The attention backend allocates a workspace after the KV pool has taken its share, and nothing is left for it.',
    mistakenFor: 'an out of memory of the model or of graph capture: the pool itself took the room',
    example:
      '    self.workspace_buffer = torch.empty(\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 23.53 GiB of which 310.38 MiB is free.',
  },
  {
    code: 'cuda-graph-capture-oom',
    title: 'memory ran out while CUDA graphs were captured',
    state: 'crashed',
    weight: 'root',
    signs: [...OUT_OF_MEMORY, 'Capture cuda graph failed: CUDA out of memory', 'CUDA out of memory{}during graph capture'],
    where: { near: CAPTURE_FRAMES, phases: ['cuda-graph-capture'] },
    phase: 'cuda-graph-capture',
    restartSameFlagsHelps: false,
    remedy: ({ facts }) => ({
      flag: byEngine(facts, '--mem-fraction-static', '--gpu-memory-utilization'),
      value: lowered(facts, 0.03),
      text: `Lower the memory fraction, so that more stays outside the pool; or capture fewer sizes (${byEngine(facts, '--cuda-graph-max-bs 64', '--max-num-seqs 64, or --compilation-config with fewer cudagraph_capture_sizes')}). Raising the fraction would make it worse.`,
    }),
    meaning: 'Graphs are captured after the pool was made, in the memory that the fraction left over. It was not enough.',
    mistakenFor: 'too small a memory fraction: at this point of the start the fraction must go down, not up',
    example:
      'Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 160.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 88.31 MiB is free.',
  },
  {
    code: 'weights-exceed-gpu-memory',
    title: 'the weights do not fit the GPU',
    state: 'crashed',
    weight: 'root',
    signs: OUT_OF_MEMORY,
    where: { near: LOAD_FRAMES, phases: ['weight-loading'] },
    phase: 'weight-loading',
    restartSameFlagsHelps: false,
    remedy: ({ facts }) => ({
      flag: byEngine(facts, '--tp', '--tensor-parallel-size'),
      value: '',
      text: 'Look first whether another process holds memory on the GPU (nvidia-smi). If not: more GPUs (tensor or pipeline parallel), or weights of fewer bits.',
    }),
    meaning:
      'Memory ran out while weights were read or repacked, before any pool was made. The memory fraction has no part in it.',
    mistakenFor: 'a memory fraction that is too high: no fraction changes how large the weights are',
    example:
      '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/model_executor/model_runner.py", line 700, in load_model\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. GPU 1 has a total capacity of 79.11 GiB of which 512.00 MiB is free.',
  },
  {
    code: 'profiling-oom',
    title: 'memory ran out in the dummy run that measures the engine',
    state: 'crashed',
    weight: 'root',
    signs: OUT_OF_MEMORY,
    where: { near: PROFILE_FRAMES, phases: ['profiling', 'torch-compile'] },
    phase: 'profiling',
    restartSameFlagsHelps: false,
    remedy: ({ facts }) => ({
      flag: byEngine(facts, '--chunked-prefill-size', '--max-num-batched-tokens'),
      value: facts.chunkedPrefill === undefined ? '' : String(Math.floor(facts.chunkedPrefill / 2)),
      text: 'The largest prefill does not fit beside the weights: halve the tokens of one batch, or lower --max-num-seqs; for models with images, limit items per prompt.',
    }),
    meaning: 'vLLM runs one largest batch before it sizes the cache. Its activations did not fit beside the weights.',
    mistakenFor: 'a KV cache that is too large: there is no cache yet',
    example:
      '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_worker.py", line 240, in determine_available_memory\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.95 GiB. GPU 0 has a total capacity of 23.53 GiB of which 1.02 GiB is free.',
  },
  {
    code: 'kv-pool-allocation-oom',
    title: 'the KV pool itself did not fit',
    state: 'crashed',
    weight: 'root',
    signs: OUT_OF_MEMORY,
    where: { near: POOL_FRAMES, phases: ['kv-pool-allocation', 'kv-cache-sized'] },
    phase: 'kv-pool-allocation',
    restartSameFlagsHelps: null,
    remedy: ({ facts }) => ({
      flag: byEngine(facts, '--mem-fraction-static', '--gpu-memory-utilization'),
      value: lowered(facts, 0.03),
      text: 'Something took memory between the measurement and the allocation, often another process on the same GPU: free it (nvidia-smi), or lower the memory fraction.',
    }),
    meaning: 'The engine computed a pool from the memory it found free, and that memory was gone when it allocated.',
    mistakenFor: 'weights that are too large',
    example:
      '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/mem_cache/memory_pool.py", line 580, in _create_buffers\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total capacity of 79.11 GiB of which 0.90 GiB is free.',
  },
  {
    code: 'runtime-oom-activation',
    title: 'an activation of a running batch did not fit',
    state: 'crashed',
    weight: 'root',
    signs: OUT_OF_MEMORY,
    where: { near: SERVE_FRAMES, phases: ['engine-initialized', 'http-bind', 'warmup', 'serving'] },
    phase: 'serving',
    restartSameFlagsHelps: false,
    remedy: ({ facts, numbers }) => runtimeRemedy(facts, numbers['tried'] ?? 0),
    meaning:
      'The server had started, and a batch (mostly a large prefill) needed more temporary memory than was left outside the pool. It comes back with the next batch of that size.',
    mistakenFor: 'a full KV pool: the pool is apart, and enlarging it makes this worse',
    example:
      '  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 1620, in run_batch\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 3 has a total capacity of 94.97 GiB of which 843.12 MiB is free.',
  },
];

/** Lower by what the measurement lacks, else by the step given; '' where the log does not show the fraction. */
function lowered(facts: RemedyFacts['facts'], step: number): string {
  const fraction = fractionOf(facts);
  return fraction === undefined ? '' : Math.max(0.1, fraction - step).toFixed(2);
}

function runtimeRemedy(facts: RemedyFacts['facts'], triedGiB: number): Remedy {
  if (triedGiB >= HUGE_GIB) {
    return {
      flag: byEngine(facts, '--chunked-prefill-size', '--max-num-batched-tokens'),
      value: String(Math.floor((facts.chunkedPrefill ?? 8192) / 2)),
      text: `One allocation of ${triedGiB} GiB fits no headroom: it grows with the tokens of one batch times its context. Halve the tokens of one batch, and limit how many long prompts prefill together.`,
    };
  }
  const { freeBeforeLoadGiB: before, freeAfterGraphsGiB: left } = facts;
  const flag = byEngine(facts, '--mem-fraction-static', '--gpu-memory-utilization');
  const short = before === undefined || left === undefined ? 0.04 : Math.max(0.01, (PREFILL_NEEDS_GIB - left) / before);
  const chunk =
    facts.chunkedPrefill === undefined ? '' : ` or halve --chunked-prefill-size (${Math.floor(facts.chunkedPrefill / 2)}),`;
  return {
    flag,
    value: lowered(facts, Math.ceil(short * 100) / 100),
    text: `Lower the memory fraction,${chunk} or ask for fewer requests at once (${byEngine(facts, '--max-running-requests 256', '--max-num-batched-tokens and --max-num-seqs')}). The same flags die again at the next large prefill.`,
  };
}

function tableText(context: number | undefined, requests: number | undefined): string {
  const asked =
    'Ask for fewer requests (--max-running-requests 256) or a shorter context (--context-length): the table is their product × 4 bytes.';
  if (context === undefined || requests === undefined) return asked;
  const gib = (context * requests * 4) / 2 ** 30;
  return `${asked} Here it is ${context} × ${requests} × 4 bytes = ${gib.toFixed(2)} GiB a GPU.`;
}

export const ANY_OUT_OF_MEMORY: Rule = {
  code: 'gpu-out-of-memory',
  title: 'the GPU ran out of memory, and the log does not show where',
  state: 'crashed',
  weight: 'symptom',
  signs: OUT_OF_MEMORY,
  restartSameFlagsHelps: false,
  remedy: advise(
    'Find the first traceback above it: before the KV pool is made the memory fraction must go up or the weights down; after it the fraction must go down. Guessing makes it worse.',
  ),
  meaning:
    'An allocation failed on the GPU. Too small a memory fraction at the start and too large a one later want opposite remedies, and this log does not show which it is.',
  mistakenFor: 'always the KV pool',
  example:
    'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of which 1.00 GiB is free.',
};
