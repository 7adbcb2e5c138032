/** In which functions of each engine a failure of each phase arises, outermost first: `file | function | code`. Pure data. */
import type { PlannedEngine } from '../../../capacity/engine-launch.ts';
import type { Phase } from '../../../diagnosis/verdict.ts';
import type { Frames } from './deaths.ts';

const SGLANG_START: Frames = [
  'sglang/srt/managers/scheduler.py | run_scheduler_process | scheduler = Scheduler(',
  'sglang/srt/managers/tp_worker.py | __init__ | self.model_runner = ModelRunner(',
];
const SGLANG_INIT: Frames = [...SGLANG_START, 'sglang/srt/model_executor/model_runner.py | initialize | self.load_model()'];

const SGLANG: Partial<Record<Phase, Frames>> = {
  'distributed-init': [
    ...SGLANG_START,
    'sglang/srt/model_executor/model_runner.py | __init__ | min_per_gpu_memory = self.init_torch_distributed()',
    'sglang/srt/model_executor/model_runner.py | init_torch_distributed | init_distributed_environment(',
  ],
  'weight-loading': [
    ...SGLANG_INIT,
    'sglang/srt/model_executor/model_runner.py | load_model | self.model = get_model(',
    'sglang/srt/model_loader/loader.py | load_model | self.load_weights_and_postprocess(',
  ],
  'kv-pool-allocation': [
    ...SGLANG_START,
    'sglang/srt/model_executor/model_runner.py | initialize | self.init_memory_pool(',
    'sglang/srt/model_executor/model_runner.py | init_memory_pool | self.max_total_num_tokens = self.profile_max_num_token(',
  ],
  'cuda-graph-capture': [
    ...SGLANG_START,
    'sglang/srt/model_executor/model_runner.py | init_device_graphs | self.graph_runner = graph_runners[self.device](self)',
    'sglang/srt/model_executor/cuda_graph_runner.py | __init__ | raise Exception(',
  ],
  serving: [
    'sglang/srt/managers/scheduler.py | run_scheduler_process | scheduler.event_loop_overlap()',
    'torch/utils/_contextlib.py | decorate_context | return func(*args, **kwargs)',
    'sglang/srt/managers/scheduler.py | event_loop_overlap | batch_result = self.run_batch(batch)',
    'sglang/srt/managers/scheduler.py | run_batch | batch_result = self.model_worker.forward_batch_generation(',
    'sglang/srt/managers/tp_worker.py | forward_batch_generation | logits_output, can_run_cuda_graph = self.model_runner.forward(',
    'sglang/srt/model_executor/model_runner.py | forward_extend | return self.model.forward(',
    'sglang/srt/layers/moe/fused_moe_triton/layer.py | forward | final_hidden_states = self.quant_method.apply(',
    'sglang/srt/layers/moe/fused_moe_triton/fused_marlin_moe.py | fused_marlin_moe | intermediate_cache3 = torch.empty(',
  ],
};

const VLLM_START: Frames = [
  'vllm/v1/engine/core.py | run_engine_core | engine_core = EngineCoreProc(*args, **kwargs)',
  'vllm/v1/engine/core.py | __init__ | self.model_executor = executor_class(vllm_config)',
];

const VLLM: Partial<Record<Phase, Frames>> = {
  'device-init': [...VLLM_START, 'vllm/v1/worker/gpu_worker.py | init_device | raise ValueError('],
  'distributed-init': [
    ...VLLM_START,
    'vllm/v1/worker/gpu_worker.py | init_worker_distributed_environment | init_distributed_environment(',
  ],
  'weight-loading': [...VLLM_START, 'vllm/v1/worker/gpu_model_runner.py | load_model | self.model = model_loader.load_model('],
  profiling: [...VLLM_START, 'vllm/v1/worker/gpu_worker.py | determine_available_memory | self.model_runner.profile_run()'],
  'kv-cache-sized': [
    'vllm/v1/engine/core.py | run_engine_core | engine_core = EngineCoreProc(*args, **kwargs)',
    'vllm/v1/engine/core.py | _initialize_kv_caches | get_kv_cache_config(vllm_config, one_spec, available_memory)',
    'vllm/v1/core/kv_cache_utils.py | check_enough_kv_cache_memory | raise ValueError(',
  ],
  'cuda-graph-capture': [...VLLM_START, 'vllm/v1/worker/gpu_model_runner.py | capture_model | self._capture_cudagraphs('],
  serving: [
    'vllm/v1/engine/core.py | run_engine_core | engine_core.run_busy_loop()',
    'vllm/v1/engine/core.py | step | model_output = self.execute_model(scheduler_output)',
    'vllm/v1/worker/gpu_model_runner.py | execute_model | model_output = self.model(',
  ],
};

/** Of the phase, or of the engine's beginning where it has none of its own. */
export function framesOf(engine: PlannedEngine, phase: string): Frames {
  const table = engine === 'sglang' ? SGLANG : VLLM;
  return table[phase as Phase] ?? (engine === 'sglang' ? SGLANG_START : VLLM_START);
}
