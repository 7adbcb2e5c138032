/** Functions of both engines that stand in a traceback of each phase: they say where something was raised. Pure data. */
import type { Phase } from '../verdict.ts';

export const CAPTURE_FRAMES = [
  'Capture cuda graph failed',
  'init_cuda_graphs',
  'init_device_graphs',
  'CudaGraphRunner(',
  'cuda_graph_runner.py{}in capture',
  'with torch.cuda.graph(',
  'in capture_end',
  'capture_one_batch_size',
  'in capture_model',
  'in _capture_cudagraphs',
  'compile_or_warm_up_model',
] as const;

export const LOAD_FRAMES = [
  'in load_model',
  'in load_weights',
  'model_loader',
  'in create_weights',
  'process_weights_after_loading',
];
export const PROFILE_FRAMES = ['in profile_run', 'determine_available_memory', 'determine_num_available_blocks', 'in _dummy_run'];
export const POOL_FRAMES = [
  'in init_memory_pool',
  'initialize_kv_cache',
  '_initialize_kv_caches',
  'in _create_buffers',
  '_allocate_kv_cache',
  'TokenToKVPool(',
];
export const SERVE_FRAMES = [
  'event_loop_',
  'run_event_loop',
  'run_batch',
  'forward_extend',
  'forward_decode',
  'forward_batch_generation',
  'run_busy_loop',
  'in execute_model',
  'in sample_tokens',
  'execute_dummy_batch',
  'logits_processor',
  'in _get_logits',
  'in sampler',
  'indexer',
  'logits =',
  'in step',
] as const;

/** Where a traceback was raised, the deepest first. */
export const FRAMES: readonly { readonly phase: Phase; readonly texts: readonly string[] }[] = [
  { phase: 'cuda-graph-capture', texts: CAPTURE_FRAMES },
  { phase: 'weight-loading', texts: LOAD_FRAMES },
  { phase: 'profiling', texts: PROFILE_FRAMES },
  { phase: 'kv-pool-allocation', texts: POOL_FRAMES },
  { phase: 'distributed-init', texts: ['init_torch_distributed', 'init_worker_distributed_environment', '_create_c10d_store'] },
  { phase: 'serving', texts: SERVE_FRAMES },
];
