/**
 * Faults as the engines word them, with the noise that stands around them: frames, echoes of other ranks, wrappers. The lines
 * are made after the engines' formats; most of these causes have no log in the corpus.
 */
import { describe, expect, it } from 'vitest';
import { verdictOf } from '../support/diagnose-log.ts';

const SGLANG_SERVES = [
  '[2026-02-01 10:00:00 TP0] max_total_num_tokens=159277, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=0.82 GB',
  '[2026-02-01 10:00:09] The server is fired up and ready to roll!',
  '[2026-02-01 10:01:00 TP0] Decode batch, #running-req: 40, #token: 90000, token usage: 0.57, cuda graph: True, gen throughput (token/s): 900.10, #queue-req: 0, ',
];
const SCHEDULER = [
  '[2026-02-01 10:02:00 TP3] Scheduler hit an exception: Traceback (most recent call last):',
  '  File "/srv/env/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 2490, in run_scheduler_process',
  '    scheduler.event_loop_overlap()',
];
const SIGQUIT = '[2026-02-01 10:02:05] SIGQUIT received. signum=None, frame=None. It usually means one child failed.';
const ENGINE = '(EngineCore_DP0 pid=9) ERROR 02-01 10:02:00 [core.py:708]';
const CORE = [
  `${ENGINE} EngineCore failed to start.`,
  `${ENGINE} Traceback (most recent call last):`,
  `${ENGINE}   File "/srv/vllm/v1/engine/core.py", line 699, in run_engine_core`,
];
const WRAPPED = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}";
const VLLM_FATAL = [
  `${ENGINE} EngineCore encountered a fatal error.`,
  `${ENGINE} Traceback (most recent call last):`,
  `${ENGINE}   File "/srv/vllm/v1/engine/core.py", line 708, in run_busy_loop`,
];
const VLLM_DEAD =
  '(APIServer pid=1) vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.';
const OOM =
  'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 3 has a total capacity of 94.97 GiB of which 843.12 MiB is free.';

const CASES: readonly (readonly [cause: string, phase: string, what: string, lines: readonly string[]])[] = [
  [
    'runtime-oom-activation',
    'serving',
    'a large prefill',
    [
      ...SGLANG_SERVES,
      ...SCHEDULER,
      '  File "/srv/sglang/srt/model_executor/model_runner.py", line 1, in forward_extend',
      OOM,
      SIGQUIT,
    ],
  ],
  [
    'runtime-oom-activation',
    'serving',
    'vLLM, in a step',
    [
      ...VLLM_FATAL,
      `${ENGINE}   File "/srv/vllm/v1/worker/gpu_model_runner.py", line 2, in execute_model`,
      `${ENGINE} ${OOM}`,
      VLLM_DEAD,
    ],
  ],
  [
    'cuda-graph-capture-oom',
    'cuda-graph-capture',
    'SGLang’s banner',
    [
      '[2026-02-01 10:00:00 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=0.50 GB',
      ...SCHEDULER,
      '  File "/srv/sglang/srt/model_executor/cuda_graph_runner.py", line 5, in capture',
      OOM,
      'Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 160.00 MiB.',
      'Possible solutions:',
      '1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)',
      SIGQUIT,
    ],
  ],
  [
    'cuda-graph-capture-oom',
    'cuda-graph-capture',
    'vLLM, while shapes are captured',
    [
      'Capturing CUDA graph shapes:  40%|####      | 14/35 [00:09<00:13,  1.55it/s]',
      ...CORE,
      `${ENGINE}   File "/srv/vllm/v1/worker/gpu_worker.py", line 3, in compile_or_warm_up_model`,
      `${ENGINE}     self.model_runner.capture_model()`,
      `${ENGINE} RuntimeError: CUDA error: out of memory`,
      WRAPPED,
    ],
  ],
  [
    'missing-kernels-for-gpu',
    'cuda-graph-capture',
    'the banner of the capture around it',
    [
      '[2026-02-01 10:00:00 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=9.50 GB',
      ...SCHEDULER,
      'Exception: Capture cuda graph failed: CUDA error: no kernel image is available for execution on the device',
      'Possible solutions:',
      '1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)',
      SIGQUIT,
    ],
  ],
  [
    'missing-kernels-for-gpu',
    'torch-compile',
    'ptxas',
    [
      'INFO 02-01 10:00:00 [backends.py:1] Dynamo bytecode transform time: 14.14 s',
      "ptxas fatal   : Value 'sm_120a' is not defined for option 'gpu-name'",
      ...CORE,
      WRAPPED,
    ],
  ],
  [
    'attention-workspace-oom',
    'attention-backend-init',
    'SGLang’s FlashInfer backend',
    [
      '[2026-02-01 10:00:00 TP0] Memory pool end. avail mem=0.31 GB',
      ...SCHEDULER,
      '  File "/srv/sglang/srt/layers/attention/flashinfer_backend.py", line 9, in __init__',
      '    global_workspace_buffer = torch.empty(',
      OOM,
    ],
  ],
  [
    'attention-workspace-oom',
    'attention-backend-init',
    'FlashInfer’s own allocator',
    [
      ...SGLANG_SERVES,
      ...SCHEDULER,
      'RuntimeError: Failed to allocate memory for batch_prefill_tmp_v with size 435814400 and alignment 16 in AlignedAllocator',
      SIGQUIT,
    ],
  ],
  [
    'req-to-token-table-oom',
    'kv-pool-allocation',
    'a context of millions',
    [
      '[2026-02-01 10:00:00 TP5] Load weight end. type=X, dtype=torch.bfloat16, avail mem=50.11 GB, mem usage=26.14 GB.',
      ...SCHEDULER,
      '  File "/srv/sglang/srt/mem_cache/memory_pool.py", line 60, in __init__',
      '    self.req_to_token = torch.zeros(',
      OOM,
      SIGQUIT,
    ],
  ],
  [
    'weights-exceed-gpu-memory',
    'weight-loading',
    'while layers are made',
    [
      '[2026-02-01 10:00:00 TP1] Load weight begin. avail mem=22.98 GB',
      ...SCHEDULER,
      '  File "/srv/sglang/srt/layers/quantization/unquant.py", line 7, in create_weights',
      OOM,
      SIGQUIT,
    ],
  ],
  [
    'weights-exceed-static-fraction',
    'kv-pool-allocation',
    'vLLM: no blocks',
    [
      ...CORE,
      `${ENGINE} ValueError: No available memory for the cache blocks. Try increasing \`gpu_memory_utilization\` when initializing the engine.`,
      WRAPPED,
    ],
  ],
  [
    'decode-oom-page-size',
    'serving',
    'pages',
    [
      ...SGLANG_SERVES,
      '[2026-02-01 10:02:00 TP0] Decode out of memory. Try to lower your batch size.',
      'Try to allocate 148 tokens.',
      'Avaliable tokens: 2048',
      ...SCHEDULER,
      'RuntimeError: Decode out of memory. Try to lower your batch size.',
      SIGQUIT,
    ],
  ],
  [
    'req-slots-exhausted',
    'serving',
    'slots',
    [
      ...SGLANG_SERVES,
      ...SCHEDULER,
      'RuntimeError: alloc_req_slots runs out of memory. Please set a smaller number for `--max-running-requests`. self.req_to_token_pool.available_size()=1, num_reqs=2,',
      SIGQUIT,
    ],
  ],
  [
    'kv-pool-full-single-request',
    'serving',
    'one request alone',
    [
      ...SGLANG_SERVES,
      '[2026-02-01 10:01:50 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.9 -> 1.0',
      ...SCHEDULER,
      'ValueError: Out of memory even after retracting all other requests in the decode batch.',
      SIGQUIT,
    ],
  ],
  [
    'bus-error-mmap-weights',
    'weight-loading',
    'faulthandler',
    [
      '[2026-02-01 10:00:00 TP0] Load weight begin. avail mem=78.50 GB',
      'Loading safetensors checkpoint shards:  13% Completed | 4/30 [00:05<00:31,  1.2s/it]',
      'Fatal Python error: Bus error',
      '',
      'Current thread 0x0000 (most recent call first):',
      '  File "/srv/sglang/srt/models/x.py", line 318 in load_weights',
      '[2026-02-01 10:00:09] Received sigquit from a child process. It usually means the child failed.',
    ],
  ],
  [
    'dev-shm-exhausted',
    '',
    'a bus error beside shared memory',
    ['ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).', ...CORE],
  ],
  [
    'host-ram-oom-kill',
    'weight-loading',
    'the parent’s words',
    [
      '[2026-02-01 10:00:00 TP0] Load weight begin. avail mem=78.50 GB',
      '[2026-02-01 10:04:00] Rank 0 scheduler is dead. Please check if there are relevant logs.',
      '[2026-02-01 10:04:00] Exit code: -9',
    ],
  ],
  [
    'host-ram-oom-kill',
    'serving',
    'the kernel’s log',
    [
      ...SGLANG_SERVES,
      'Feb 01 10:02:00 gpu-host kernel: Out of memory: Killed process 4120 (sglang::schedul) total-vm:91230000kB, anon-rss:61230000kB',
    ],
  ],
  [
    'broken-install',
    'model-import',
    'an extension of another build',
    [
      'INFO 02-01 10:00:00 [__init__.py:224] Automatically detected platform cuda.',
      'Traceback (most recent call last):',
      '  File "/srv/env/bin/vllm", line 3, in <module>',
      'ImportError: /srv/env/lib/python3.12/site-packages/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda9SetDeviceEab',
    ],
  ],
  [
    'broken-install',
    'model-import',
    'below import errors that are harmless',
    [
      "[2026-02-01 10:00:00 TP0] Ignore import error when loading sglang.srt.models.x: No module named 'transformers.models.x'",
      ...SCHEDULER,
      'ImportError: libcudart.so.12: cannot open shared object file: No such file or directory',
      SIGQUIT,
    ],
  ],
  [
    'transformers-version-mismatch',
    'model-resolution',
    'an architecture from the future',
    [
      'Traceback (most recent call last):',
      'ValueError: The checkpoint you are trying to load has model type `new_moe` but Transformers does not recognize this architecture. This could be because of an issue with the checkpoint, or because your version of Transformers is out of date.',
    ],
  ],
  [
    'transformers-version-mismatch',
    'model-resolution',
    'a tokenizer from the future',
    [
      '(APIServer pid=1) Traceback (most recent call last):',
      '(APIServer pid=1) ValueError: Tokenizer class TokenizersBackend does not exist or is not currently imported.',
    ],
  ],
  [
    'transformers-version-mismatch',
    'model-resolution',
    'an attribute that moved',
    [
      '[2026-02-01 10:00:00 TP0] Scheduler hit an exception: Traceback (most recent call last):',
      "AttributeError: 'NewVisionConfig' object has no attribute 'rope_theta'",
    ],
  ],
  [
    'disk-full',
    'torch-compile',
    'the compile cache',
    [
      "INFO 02-01 10:00:00 [backends.py:416] Using cache directory: /root/.cache/vllm/torch_compile_cache/3054/rank_0_0 for vLLM's torch.compile",
      ...CORE,
      `${ENGINE} OSError: [Errno 28] No space left on device: '/root/.cache/vllm/x'`,
      WRAPPED,
    ],
  ],
  [
    'dev-shm-exhausted',
    '',
    'no space, in shared memory',
    [
      ...CORE,
      `${ENGINE}   File "/usr/lib/python3.12/multiprocessing/shared_memory.py", line 121, in __init__`,
      `${ENGINE} OSError: [Errno 28] No space left on device`,
      WRAPPED,
    ],
  ],
  [
    'multi-node-peer-lost',
    'serving',
    'RDMA',
    [
      ...SGLANG_SERVES,
      'node2:412:9 [3] NCCL WARN NET/IB : Got completion from peer 10.0.0.12<38536> with status=12 error',
      '[rank11]:[E1 ProcessGroupNCCL.cpp:1785] NCCL error: remote process exited or there was a network error, NCCL version 2.27.5',
      'ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.',
      ...SCHEDULER,
      SIGQUIT,
    ],
  ],
  [
    'multi-node-peer-lost',
    'serving',
    'gloo',
    [
      ...SCHEDULER,
      'RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.12]:41234',
      SIGQUIT,
    ],
  ],
  [
    'cuda-illegal-memory-access',
    'serving',
    'with a NCCL time-out of the other ranks after it',
    [
      ...SGLANG_SERVES,
      '[2026-02-01 10:02:00 TP1] Scheduler hit an exception: Traceback (most recent call last):',
      'torch.AcceleratorError: CUDA error: an illegal memory access was encountered',
      '[rank0]:[E ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=81234, OpType=ALLREDUCE, NumelIn=57344, NumelOut=57344, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.',
      SIGQUIT,
    ],
  ],
  [
    'gpu-hardware-fault',
    '',
    'Xid 79 above an EngineDeadError',
    [
      '[93297.02] NVRM: Xid (PCI:0000:43:00): 79, pid=4120, GPU has fallen off the bus.',
      ...VLLM_FATAL,
      `${ENGINE} RuntimeError: NCCL error: unhandled cuda error`,
      VLLM_DEAD,
    ],
  ],
  [
    'gpu-hardware-fault',
    'serving',
    'ECC',
    [...SGLANG_SERVES, ...SCHEDULER, 'RuntimeError: CUDA error: uncorrectable ECC error encountered', SIGQUIT],
  ],
  [
    'nccl-collective-timeout',
    'serving',
    'alone',
    [
      ...SGLANG_SERVES,
      '[rank0]:[E ProcessGroupNCCL.cpp:629] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=81234, OpType=ALLREDUCE, NumelIn=57344, NumelOut=57344, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.',
      SIGQUIT,
    ],
  ],
  [
    'worker-stuck-shm-broadcast',
    'serving',
    'its end',
    [...VLLM_FATAL, `${ENGINE} TimeoutError: RPC call to sample_tokens timed out.`, VLLM_DEAD],
  ],
  [
    'port-in-use',
    'http-bind',
    'after the whole load',
    [
      ...SGLANG_SERVES.slice(0, 1),
      "[2026-02-01 10:00:01] ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 30000): address already in use",
    ],
  ],
  [
    'gated-repo-unauthorized',
    'model-resolution',
    'a repository that is not there',
    [
      'Traceback (most recent call last):',
      'huggingface_hub.errors.RepositoryNotFoundError: 404 Client Error. Repository Not Found for url: https://huggingface.co/api/models/org/m.',
    ],
  ],
  [
    'kv-connector-plugin-missing',
    'kv-connector-init',
    'no module',
    [...CORE, `${ENGINE} RuntimeError: NIXL is not available`, WRAPPED],
  ],
  [
    'jit-toolchain-broken',
    'cuda-graph-capture',
    'under the banner of the capture',
    [
      '[2026-02-01 10:00:00 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=9.50 GB',
      ...SCHEDULER,
      'RuntimeError: Ninja build failed. Ninja output:',
      '/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found',
      'Exception: Capture cuda graph failed: Ninja build failed.',
      SIGQUIT,
    ],
  ],
  [
    'cuda-driver-mismatch',
    'device-init',
    'compat libraries',
    [
      'RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 803: system has unsupported display driver / cuda driver combination',
    ],
  ],
  [
    'unknown-flag',
    'argument-parsing',
    'vLLM',
    ['usage: vllm serve [model_tag] [options]', 'vllm: error: unrecognized arguments: --enable-prefix-cachin'],
  ],
  [
    'unknown-flag',
    'argument-parsing',
    'a value',
    ["launch_server.py: error: argument --attention-backend: invalid choice: 'fa9' (choose from 'triton', 'fa3')"],
  ],
  ['engine-core-init-failed', '', 'the wrapper alone', [WRAPPED]],
  [
    'ray-placement-group-unsatisfiable',
    'distributed-init',
    'Ray gives up',
    [
      '(EngineCore_DP0 pid=9) WARNING 02-01 10:00:00 [ray_utils.py:352] Tensor parallel size (16) exceeds available GPUs (8). This may result in Ray placement group allocation failures.',
      ...CORE,
      `${ENGINE} ValueError: Cannot provide a placement group of placement_group_specs=[] within 1800 seconds.`,
      WRAPPED,
    ],
  ],
  [
    'attention-workspace-oom',
    'attention-backend-init',
    'vLLM’s workspace',
    [
      ...VLLM_FATAL,
      `${ENGINE} AssertionError: Workspace is locked but allocation from 'x' requires 512.00 MB, current size is 256.00 MB. Workspace growth is not allowed after locking.`,
      VLLM_DEAD,
    ],
  ],
  [
    'unknown',
    'serving',
    'an exception that no rule knows',
    [...SGLANG_SERVES, ...SCHEDULER, 'AssertionError: len(self.waiting_queue) != 7', SIGQUIT],
  ],
];

describe('a crash', () => {
  it.each(CASES.map(([cause, phase, what, lines]) => [`${cause}: ${what}`, cause, phase, lines] as const))(
    '%s',
    (_, cause, phase, lines) => {
      const verdict = verdictOf(`${lines.join('\n')}\n`);
      expect({ state: verdict.state, cause: verdict.cause, phase: verdict.phase }, JSON.stringify(verdict.evidence)).toEqual({
        state: 'crashed',
        cause,
        phase,
      });
    },
  );
});
