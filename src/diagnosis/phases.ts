/**
 * Which line begins which phase of a start, and how long a phase may be silent. Pure data.
 * Limits: measured and typical durations of eight-GPU starts, and the engines' own timers.
 */
import type { Sign } from './sign.ts';
import { PHASES, type Phase } from './verdict.ts';

export interface Marker {
  readonly phase: Phase;
  readonly signs: readonly (string | Sign)[];
  /** Also written later than the phase: it begins the phase only where no later one has begun. */
  readonly isWeak?: boolean;
  /** What the phase counts is done; the next one writes nothing when it begins. */
  readonly ends?: boolean;
}

export const MARKERS: readonly Marker[] = [
  {
    // docker, podman, and pyxis below srun: each layer a line, and no bar where nobody sits at a terminal.
    phase: 'image-fetch',
    isWeak: true,
    signs: [
      "Unable to find image '",
      ': Pulling from ',
      ': Pulling fs layer',
      ': Download complete',
      ': Pull complete',
      'Trying to pull ',
      'Copying blob ',
      'pyxis: importing docker image',
    ],
  },
  {
    phase: 'image-fetch',
    isWeak: true,
    ends: true,
    signs: ['Status: Downloaded newer image for', 'Writing manifest to image destination', 'pyxis: imported docker image'],
  },
  {
    phase: 'argument-parsing',
    signs: ['server_args=ServerArgs(', 'vLLM API server version', 'non-default args: {'],
  },
  { phase: 'model-import', isWeak: true, signs: ['Automatically detected platform', 'Ignore import error when loading'] },
  {
    phase: 'model-resolution',
    isWeak: true,
    signs: ['Resolved architecture:', 'Using max model len', 'Fetching {n} files:', 'Downloading shards:'],
  },
  { phase: 'device-init', isWeak: true, signs: ['LLM engine (v{} with config:'] },
  { phase: 'distributed-init', signs: ['Init torch distributed begin'] },
  {
    phase: 'distributed-init',
    isWeak: true,
    signs: [
      'is using nccl==',
      'GPU P2P access cache',
      'Found nccl from library',
      '[Gloo] Rank',
      'NCCL INFO',
      'NCCL version {}',
      'Init torch distributed ends',
      'Setup Custom allreduce failed',
      'Custom allreduce is disabled',
      'distributed_init_method=',
      'No current placement group found',
      'in world size {} is assigned as',
    ],
  },
  {
    phase: 'weight-loading',
    signs: ['Load weight begin', 'Starting to load model', 'Beginning to load weights', 'Loading model weights took'],
  },
  {
    phase: 'weight-loading',
    isWeak: true,
    signs: ['checkpoint shards:', 'Multi-thread loading shards:', 'Loading model from ', 'Loading weights from '],
  },
  { phase: 'weight-loading', isWeak: true, ends: true, signs: ['Load weight end', 'Model loading took', 'Loading weights took'] },
  {
    phase: 'profiling',
    isWeak: true,
    signs: [
      'Encoder cache will be initialized',
      'Memory profiling takes',
      'Memory profiling results:',
      'Initial profiling/warmup run took',
      'profile_run',
    ],
  },
  {
    phase: 'torch-compile',
    isWeak: true,
    signs: [
      'Dynamo bytecode transform time',
      'torch.compile take',
      'torch.compile took',
      'Compiling a graph for',
      'Cache the graph of',
      'Directly load the compiled graph',
      "cache directory: {} for vLLM's torch.compile",
    ],
  },
  { phase: 'kv-connector-init', isWeak: true, signs: ['Registering KV_Caches', 'Creating v1 connector with name'] },
  {
    phase: 'kv-pool-allocation',
    isWeak: true,
    signs: [
      'KV Cache is allocated.',
      'Memory pool end.',
      'GB host memory for hierarchical',
      'hierarchical KV host pool:',
      'Available KV cache memory',
    ],
  },
  {
    phase: 'kv-cache-sized',
    isWeak: true,
    signs: ['GPU KV cache size:', 'Maximum concurrency for', '# GPU blocks:', '# cuda blocks:'],
  },
  {
    phase: 'cuda-graph-capture',
    signs: [
      'Capture cuda graph begin',
      'CUDA graph begin.',
      'Capturing batches',
      'Capturing CUDA graph',
      'Capturing cudagraph',
      'Capturing the model for CUDA graphs',
    ],
  },
  {
    phase: 'cuda-graph-capture',
    ends: true,
    isWeak: true,
    signs: ['cuda graph end.', 'Graph capturing finished'],
  },
  {
    phase: 'engine-initialized',
    isWeak: true,
    signs: ['max_total_num_tokens={n}, ', 'init engine (profile, create kv cache', 'Engine startup timings (s)'],
  },
  {
    phase: 'http-bind',
    isWeak: true,
    signs: [
      'Started server process',
      'Waiting for application startup',
      'Uvicorn running on',
      'Starting vLLM API server',
      'Starting vLLM server on',
    ],
  },
  { phase: 'warmup', isWeak: true, signs: ['GET /get_model_info HTTP', 'GET /model_info HTTP'] },
];

/** Lines of work that takes long without a phase of its own: kernels that are compiled when they are first used. */
export const COMPILING: readonly string[] = [
  'Entering DeepGEMM JIT',
  'DeepGEMM warmup',
  'DeepGEMM JIT Compiling',
  'flashinfer.jit: Loading JIT ops',
  'Running FlashInfer autotune',
];

const SECOND = 1000;
/** Silence beyond which a phase is hung, in milliseconds. */
export const SILENCE_LIMIT: Readonly<Record<Phase, number>> = {
  // Between two layers: the largest of an engine's image is 8 to 10 GB, half an hour at 5 MB/s, and is unpacked in silence too.
  'image-fetch': 3600 * SECOND,
  'argument-parsing': 180 * SECOND,
  'model-import': 180 * SECOND,
  // A download says nothing for long; hub clients give up far below this.
  'model-resolution': 1800 * SECOND,
  'device-init': 180 * SECOND,
  // Typical 3 to 30 s; the process group itself gives up after 600 s.
  'distributed-init': 120 * SECOND,
  // Between two bars; before the first one 13.5 minutes of a download were seen, after the last 480 s are the engine's own limit.
  'weight-loading': 480 * SECOND,
  'tokenizer-load': 180 * SECOND,
  profiling: 600 * SECOND,
  'torch-compile': 900 * SECOND,
  'attention-backend-init': 600 * SECOND,
  'kv-connector-init': 300 * SECOND,
  // Host memory for a hierarchical cache is pinned at about a second per GB.
  'kv-pool-allocation': 300 * SECOND,
  'kv-cache-sized': 600 * SECOND,
  'jit-compile': 1800 * SECOND,
  'cuda-graph-capture': 600 * SECOND,
  'engine-initialized': 180 * SECOND,
  'http-bind': 120 * SECOND,
  // SGLang's own limit of its warm-up request.
  warmup: 600 * SECOND,
  // SGLang's watchdog fires after 300 s to 450 s without a forward pass.
  serving: 450 * SECOND,
};
/** Kernels that are compiled take 10 to 20 minutes the first time. */
export const COMPILING_LIMIT = 1800 * SECOND;
/** Before the first shard: a download or a first build of kernels, silent for 13.5 minutes once. */
export const BEFORE_FIRST_SHARD_LIMIT = 1800 * SECOND;

export function phaseOrder(phase: Phase | ''): number {
  return phase === '' ? -1 : PHASES.indexOf(phase);
}
