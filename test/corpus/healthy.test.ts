/** Starts of both engines that went well, with every line that frightens people; cut at each of their lines. */
import { describe, expect, it } from 'vitest';
import { verdictOf } from '../support/diagnose-log.ts';

const RANKS = [0, 1, 2, 3];
const each = (at: string, text: string) => RANKS.map((rank) => `[2026-02-01 ${at} TP${rank}] ${text}`);

const SGLANG = [
  'INFO 02-01 09:59:50 [__init__.py:244] Automatically detected platform cuda.',
  '[2026-02-01 09:59:52] WARNING server_args.py:885: Attention backend not specified. Use triton backend by default.',
  '[2026-02-01 09:59:52] WARNING model_config.py:12: DeepGemm is enabled but the scale_fmt of checkpoint is not ue8m0. This might cause accuracy degradation on Blackwell.',
  "[2026-02-01 09:59:53] server_args=ServerArgs(model_path='/models/m', mem_fraction_static=0.88, tp_size=4, nnodes=1, node_rank=0, dist_init_addr=None, kv_cache_dtype='auto', watchdog_timeout=300)",
  '/srv/env/lib/python3.12/site-packages/torch/cuda/__init__.py:61: FutureWarning: The pynvml package is deprecated. Please install nvidia-ml-py instead. If you did not install pynvml directly, please report this to the maintainers of the package that installed pynvml for you.',
  '`torch_dtype` is deprecated! Use `dtype` instead!',
  "Unrecognized keys in `rope_scaling` for 'rope_type'='yarn': {'attn_factor'}",
  '[W201 09:59:58.123456 socket.cpp:767] [c10d] The client socket cannot be initialized to connect to [::ffff:10.0.0.1]:29500 (errno: 97 - Address family not supported by protocol).',
  ...each('10:00:00', "Ignore import error when loading sglang.srt.models.x: No module named 'transformers.models.x'"),
  ...each(
    '10:00:01',
    'Ignore import error when loading sglang.srt.models.y: libcudart.so.12: cannot open shared object file: No such file or directory',
  ),
  ...each('10:00:02', 'Init torch distributed begin.'),
  '[Gloo] Rank 0 is connected to 3 peer ranks. Expected number of connected peer ranks is : 3[Gloo] Rank 1 is connected to 3 peer ranks. Expected number of connected peer ranks is : 3',
  '[2026-02-01 10:00:04 TP0] sglang is using nccl==2.27.5',
  ...each(
    '10:00:05',
    "Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs. To silence this warning, specify disable_custom_all_reduce=True explicitly.",
  ),
  ...each('10:00:06', 'Init torch distributed ends. elapsed=2.84 s, mem usage=0.28 GB'),
  ...each('10:00:07', 'Load weight begin. avail mem=94.14 GB'),
  ...[0, 25, 50, 75, 100].map(
    (share) =>
      `Loading safetensors checkpoint shards: ${String(share).padStart(3)}% Completed | ${(share * 64) / 100}/64 [00:0${share / 25}<00:04,  8.27it/s]\r`,
  ),
  ...each('10:01:20', 'Load weight end. elapsed=73.10 s, type=X, dtype=torch.bfloat16, avail mem=21.82 GB, mem usage=72.33 GB.'),
  '[2026-02-01 10:01:21 TP0] Using KV cache dtype: torch.bfloat16',
  ...each('10:01:21', 'KV Cache is allocated. #tokens: 159277, KV size: 10.42 GB'),
  ...each('10:01:22', 'Memory pool end. avail mem=9.30 GB'),
  '[2026-02-01 10:01:22 TP0] Using default MoE kernel config. Performance might be sub-optimal! Config file not found at /srv/E=384,N=256,device_name=NVIDIA.json',
  ...each('10:01:23', 'Capture cuda graph begin. This can take up to several minutes. avail mem=9.20 GB'),
  ...[0, 20, 52].map(
    (done) =>
      `Capturing batches (bs=512 avail_mem=8.97 GB):  ${Math.round(done / 0.52)}%|###       | ${done}/52 [00:0${done % 10}<00:20,  1.55it/s]`,
  ),
  ...each('10:01:55', 'Capture cuda graph end. Time elapsed: 31.20 s. mem usage=2.31 GB. avail mem=5.47 GB.'),
  '[2026-02-01 10:01:56 TP0] max_total_num_tokens=159277, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=5.47 GB',
  '[2026-02-01 10:01:57] INFO:     Started server process [4120]',
  '[2026-02-01 10:01:57] INFO:     Application startup complete.',
  '[2026-02-01 10:01:57] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)',
  '[2026-02-01 10:01:58] INFO:     127.0.0.1:40000 - "GET /health HTTP/1.1" 503 Service Unavailable',
  '[2026-02-01 10:01:58] INFO:     127.0.0.1:40000 - "GET /model_info HTTP/1.1" 200 OK',
  '[2026-02-01 10:01:59 TP0] Prefill batch, #new-seq: 1, #new-token: 44, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, ',
  '[2026-02-01 10:02:05] INFO:     127.0.0.1:40002 - "POST /generate HTTP/1.1" 200 OK',
  '[2026-02-01 10:02:05] The server is fired up and ready to roll!',
  '[2026-02-01 10:03:00] INFO:     10.0.0.9:40002 - "POST /generate HTTP/1.1" 400 Bad Request',
  '[2026-02-01 10:03:01] ERROR:    Exception in ASGI application',
  'Traceback (most recent call last):',
  '  File "/srv/env/lib/python3.12/site-packages/uvicorn/protocols/http/httptools_impl.py", line 409, in run_asgi',
  '    result = await app(',
  'json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)',
  '[2026-02-01 10:03:02 TP0] Prefill batch, #new-seq: 4, #new-token: 900, #cached-token: 0, token usage: 0.01, #running-req: 0, #queue-req: 2, ',
  '[2026-02-01 10:03:05 TP0] Decode batch, #running-req: 6, #token: 2400, token usage: 0.02, cuda graph: True, gen throughput (token/s): 0.31, #queue-req: 0, ',
  '[2026-02-01 10:03:08 TP0] Decode batch, #running-req: 6, #token: 2640, token usage: 0.02, cuda graph: True, gen throughput (token/s): 88.20, #queue-req: 0, ',
  '[2026-02-01 10:03:09] INFO:     10.0.0.9:40003 - "POST /generate HTTP/1.1" 200 OK',
];

const worker = (at: string, text: string) =>
  RANKS.map((rank) => `(Worker_TP${rank} pid=${100 + rank}) ${text.replace('AT', `02-01 ${at}`)}`);

const VLLM = [
  'INFO 02-01 10:00:00 [__init__.py:244] Automatically detected platform cuda.',
  '(APIServer pid=1) INFO 02-01 10:00:02 [api_server.py:1755] vLLM API server version 0.16.0',
  "(APIServer pid=1) INFO 02-01 10:00:02 [cli_args.py:261] non-default args: {'model': 'org/m', 'tensor_parallel_size': 4, 'gpu_memory_utilization': 0.93}",
  '(APIServer pid=1) WARNING 02-01 10:00:03 [config.py:12] Casting torch.float32 to torch.bfloat16. If out of memory, error: see docs.',
  '(APIServer pid=1) INFO 02-01 10:00:05 [model.py:514] Resolved architecture: NewForCausalLM',
  "(APIServer pid=1) WARNING 02-01 10:00:05 [import.py:1] Failed to import from vllm._moe_C with ImportError('undefined symbol: _ZN3c10')",
  "(EngineCore_DP0 pid=9) INFO 02-01 10:00:12 [core.py:93] Initializing a V1 LLM engine (v0.16.0) with config: model='org/m', kv_cache_dtype=auto, seed=0",
  ...worker(
    '10:00:15',
    'INFO AT [parallel_state.py:1208] world_size=4 rank=0 local_rank=0 distributed_init_method=tcp://127.0.0.1:41234 backend=nccl',
  ),
  '[Gloo] Rank 0 is connected to 3 peer ranks. Expected number of connected peer ranks is : 3',
  '[rank0]:[W201 10:00:16.1 ProcessGroupNCCL.cpp:5188] Guessing device ID based on global rank. This can cause a hang if rank to GPU mapping is heterogeneous.',
  ...worker('10:00:17', 'INFO AT [pynccl.py:111] vLLM is using nccl==2.27.5'),
  ...worker(
    '10:00:18',
    "WARNING AT [custom_all_reduce.py:137] Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs. To silence this warning, specify disable_custom_all_reduce=True explicitly.",
  ),
  ...worker('10:00:20', 'INFO AT [gpu_model_runner.py:3808] Starting to load model org/m...'),
  ...[0, 3, 9].map(
    (done) =>
      `Loading safetensors checkpoint shards:  ${Math.round(done / 0.09)}% Completed | ${done}/9 [00:0${done}<00:04,  1.27it/s]`,
  ),
  ...worker('10:00:40', 'INFO AT [default_loader.py:293] Loading weights took 19.80 seconds'),
  ...worker('10:00:41', 'INFO AT [gpu_model_runner.py:3905] Model loading took 18.22 GiB memory and 20.31 seconds'),
  ...worker(
    '10:00:50',
    "INFO AT [backends.py:643] Using cache directory: /root/.cache/vllm/torch_compile_cache/ab/rank_0_0 for vLLM's torch.compile",
  ),
  ...worker('10:00:58', 'INFO AT [backends.py:703] Dynamo bytecode transform time: 8.14 s'),
  '(EngineCore_DP0 pid=9) INFO 02-01 10:01:50 [shm_broadcast.py:542] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization).',
  '(EngineCore_DP0 pid=9) INFO 02-01 10:02:50 [shm_broadcast.py:542] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization).',
  ...worker('10:03:10', 'INFO AT [monitor.py:34] torch.compile takes 132.60 s in total'),
  ...worker('10:03:20', 'INFO AT [gpu_worker.py:349] Available KV cache memory: 61.30 GiB'),
  '(EngineCore_DP0 pid=9) INFO 02-01 10:03:21 [kv_cache_utils.py:1229] GPU KV cache size: 1,004,576 tokens',
  '(EngineCore_DP0 pid=9) INFO 02-01 10:03:21 [kv_cache_utils.py:1234] Maximum concurrency for 262,144 tokens per request: 3.83x',
  '(Worker_TP0 pid=100) INFO 02-01 10:03:22 [model_runner.py:1442] Capturing cudagraphs for decoding. If out-of-memory error occurs during cudagraph capture, consider decreasing `gpu_memory_utilization` or switching to eager mode.',
  ...[1, 40, 67].map(
    (done) =>
      `Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  ${Math.round(done / 0.67)}%|####      | ${done}/67 [00:05<00:03, 11.74it/s]`,
  ),
  ...worker('10:03:35', 'INFO AT [gpu_model_runner.py:4901] Graph capturing finished in 12 secs, took 1.31 GiB'),
  '(EngineCore_DP0 pid=9) INFO 02-01 10:03:36 [core.py:279] init engine (profile, create kv cache, warmup model) took 155.42 seconds',
  "(APIServer pid=1) WARNING 02-01 10:03:38 [model.py:1354] Default sampling parameters have been overridden by the model's Hugging Face generation config.",
  '(APIServer pid=1) INFO 02-01 10:03:39 [api_server.py:1346] Starting vLLM API server 0 on http://0.0.0.0:8000',
  '(APIServer pid=1) INFO:     Started server process [1]',
  '(APIServer pid=1) INFO:     Waiting for application startup.',
  '(APIServer pid=1) INFO:     Application startup complete.',
  '(APIServer pid=1) INFO:     127.0.0.1:40000 - "GET /health HTTP/1.1" 200 OK',
  '(APIServer pid=1) INFO:     10.0.0.9:40001 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
  '(APIServer pid=1) ERROR 02-01 10:04:10 [serving_chat.py:222] Error in preprocessing prompt inputs',
  '(APIServer pid=1) ERROR 02-01 10:04:10 [serving_chat.py:222] Traceback (most recent call last):',
  "(APIServer pid=1) ERROR 02-01 10:04:10 [serving_chat.py:222] ValueError: This model's maximum context length is 262144 tokens. However, you requested 300000 tokens.",
  '(APIServer pid=1) INFO:     10.0.0.9:40001 - "POST /v1/chat/completions HTTP/1.1" 400 Bad Request',
  '(APIServer pid=1) INFO 02-01 10:04:20 [loggers.py:259] Engine 000: Avg prompt throughput: 812.0 tokens/s, Avg generation throughput: 410.5 tokens/s, Running: 12 reqs, Waiting: 0 reqs, GPU KV cache usage: 2.4%, Prefix cache hit rate: 11.0%',
  '(APIServer pid=1) INFO 02-01 10:04:30 [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 33.1 tokens/s, Running: 0 reqs, Waiting: 0 reqs, GPU KV cache usage: 0.0%, Prefix cache hit rate: 11.0%',
];

describe.each([
  ['SGLang', SGLANG],
  ['vLLM', VLLM],
])('a healthy start of %s', (_, lines) => {
  it('is none at every line, from the first on, and never goes back', () => {
    const order = ['initializing', 'ready', 'serving'];
    let reached = 0;
    lines.forEach((line, at) => {
      const { state, cause, evidence } = verdictOf(`${lines.slice(0, at + 1).join('\n')}\n`);
      const where = `line ${at + 1}: ${line}\n${JSON.stringify(evidence)}`;
      expect(cause, where).toBe('none');
      expect(order, where).toContain(state);
      expect(order.indexOf(state), where).toBeGreaterThanOrEqual(reached);
      reached = order.indexOf(state);
    });
    expect(order[reached]).toBe('serving');
  });
});
