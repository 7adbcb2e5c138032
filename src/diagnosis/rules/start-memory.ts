/** Memory that is missing before the server can serve: the engine itself says so in a sentence. */
import { advise, byEngine, fractionOf, type Rule, setFlag } from '../rule.ts';

/** Beyond what the weights alone need, so that some pool is left; a share of the GPU. */
const FRACTION_MARGIN = 0.02;

export const START_MEMORY_RULES: readonly Rule[] = [
  {
    code: 'weights-exceed-static-fraction',
    title: 'the weights leave nothing of the memory fraction for the KV pool',
    state: 'crashed',
    weight: 'root',
    signs: [
      'Not enough memory. Please try to increase --mem-fraction-static',
      'Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static',
      'No available memory for the cache blocks',
      'Memory pool size is too small',
      'max_running_request is zero',
      'Not enough memory for the KV cache',
    ],
    phase: 'kv-pool-allocation',
    restartSameFlagsHelps: false,
    remedy: ({ facts, numbers }) => {
      const { freeAfterLoadGiB: after, weightsGiBPerGpu: weights } = facts;
      const before = facts.freeBeforeLoadGiB ?? (after === undefined || weights === undefined ? undefined : after + weights);
      const least = numbers['least'] ?? (before === undefined || after === undefined ? undefined : 1 - after / before);
      const value = least === undefined ? '' : Math.min(0.99, Math.ceil((least + FRACTION_MARGIN) * 100) / 100).toFixed(2);
      const why = least === undefined ? '' : ` The weights alone need ${least.toFixed(3)} of it.`;
      return {
        flag: byEngine(facts, '--mem-fraction-static', '--gpu-memory-utilization'),
        value,
        text: `Raise the memory fraction (not lower it), or spread the weights over more GPUs, or free the GPU of other processes.${why}`,
      };
    },
    meaning:
      'After the weights were loaded, nothing (or less than nothing) of the share that the fraction allows was left for the KV pool.',
    mistakenFor: 'a fraction that is too high, because the word memory stands in it: here the fraction must go up',
    example: 'RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.',
  },
  {
    code: 'unbalanced-gpu-memory',
    title: 'some GPUs have much less free memory than others',
    state: 'crashed',
    weight: 'root',
    signs: [{ text: 'The memory capacity is unbalanced', not: ['WARNING'] }],
    phase: 'distributed-init',
    restartSameFlagsHelps: false,
    remedy: advise(
      'Find who holds memory on the GPU with the least free (nvidia-smi; from inside a container the holder may be invisible: ask the host), stop it, and wait until the memory is free. Do not just switch the check off.',
    ),
    meaning:
      'SGLang compares free memory between ranks before it loads; one has less than 0.9 of the others. Mostly a leftover of a killed server, or a draft model beside the target.',
    mistakenFor: 'a memory fraction that is wrong',
    example:
      'RuntimeError: The memory capacity is unbalanced. Some GPUs may be occupied by other processes. pre_model_load_memory=76.2, local_gpu_memory=23.1, local_gpu_memory * 0.9=20.8',
  },
  {
    code: 'gpu-memory-held-by-other-process',
    title: 'another process holds the memory that the fraction asks for',
    state: 'crashed',
    weight: 'root',
    signs: [
      'Free memory on device {}({free}/{total} GiB) on startup is less than desired GPU memory utilization',
      'Free memory on device {} on startup is less than desired',
      'Error in memory profiling. Initial free memory',
      'This happens when the GPU memory was not properly cleaned up before',
      'is less than desired GPU memory utilization (',
    ],
    phase: 'device-init',
    restartSameFlagsHelps: false,
    remedy: ({ numbers }) => {
      const { free, total } = numbers;
      const value = free === undefined || total === undefined || total <= 0 ? '' : Math.max(0.05, free / total - 0.02).toFixed(2);
      return {
        flag: '--gpu-memory-utilization',
        value,
        text: 'Stop the process that holds the memory (nvidia-smi --query-compute-apps=pid,used_memory --format=csv) or wait until the last server has let go; or ask for a smaller share.',
      };
    },
    meaning:
      'The engine asks for a share of the whole card, and less than that is free at the start: another server, a leftover of one, or a desktop.',
    mistakenFor: 'a model that is too large: nothing has been loaded yet',
    example:
      'ValueError: Free memory on device (24.5/79.1 GiB) on startup is less than desired GPU memory utilization (0.9, 71.19 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.',
  },
  {
    code: 'max-model-len-exceeds-kv-capacity',
    title: 'one request of the maximum length does not fit the KV cache',
    state: 'crashed',
    weight: 'root',
    signs: [
      'max seq len ({asked}){}larger than the available KV cache memory{}estimated maximum model length is {length}',
      'To serve at least one request with the model{} max seq len',
      'is larger than the maximum number of tokens that can be stored in KV cache ({length})',
      'is larger than the maximum number of tokens that can be stored in KV cache',
    ],
    phase: 'kv-pool-allocation',
    restartSameFlagsHelps: false,
    remedy: ({ numbers }) => ({
      flag: '--max-model-len',
      value: numbers['length'] === undefined ? '' : String(numbers['length']),
      text: 'Set a maximum length that fits (the engine names the longest one), or make room: a higher memory fraction, fewer tokens per batch, more GPUs.',
    }),
    meaning: 'vLLM refuses to start where a single request of max_model_len could not be held.',
    mistakenFor: 'an out of memory: the sizes are fine, the promise of the length is not',
    example:
      "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the available KV cache memory (9.50 GiB). Based on the available memory, the estimated maximum model length is 77824. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
  },
  {
    code: 'mamba-blocks-below-max-num-seqs',
    title: 'a hybrid model has fewer state blocks than sequences are allowed',
    state: 'crashed',
    weight: 'root',
    signs: [
      'max_num_seqs ({asked}) exceeds available Mamba cache blocks ({blocks})',
      'exceeds available Mamba cache blocks',
      'Mamba cache blocks{}max_num_seqs',
      'max_num_seqs{}Mamba{}blocks',
      'mamba{}blocks{}max-num-seqs',
      'state cache is too small to serve any requests',
      'max_mamba_cache_size is too small',
    ],
    phase: 'kv-pool-allocation',
    restartSameFlagsHelps: false,
    remedy: ({ facts, numbers }) => ({
      flag: byEngine(facts, '--max-running-requests', '--max-num-seqs'),
      value: numbers['blocks'] === undefined ? '' : String(numbers['blocks']),
      text: 'Allow no more sequences than there are state blocks (each running request needs one), or give the engine more memory.',
    }),
    meaning:
      'A hybrid (state-space) model keeps one state block for each running sequence; the memory holds fewer than the sequences that are allowed.',
    mistakenFor: 'a KV cache that is too small in tokens',
    example:
      'ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (412). Each decode sequence requires one Mamba cache block, so CUDA graph capture cannot proceed.',
  },
  {
    code: 'mamba-blocks-below-max-num-seqs',
    title: 'a hybrid model has fewer state blocks than sequences are allowed',
    state: 'crashed',
    weight: 'root',
    signs: ['CUDA error: device kernel image is invalid'],
    where: { near: ['Capturing CUDA graphs{}, PIECEWISE'], phases: ['cuda-graph-capture'] },
    phase: 'cuda-graph-capture',
    restartSameFlagsHelps: false,
    remedy: setFlag(
      '--max-num-seqs',
      '256',
      'Other sizes were captured, so the kernels do fit this GPU: allow fewer sequences, and upgrade (later versions name the shortage of state blocks).',
    ),
    meaning:
      'Some versions of vLLM run over the end of a hybrid model’s state blocks while they capture the larger sizes; it shows as an invalid kernel image in the middle of the bar.',
    mistakenFor: 'a driver or a wheel that does not fit the GPU: then the first size would have failed',
    example:
      'Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  70%|███████   | 36/51 [00:03<00:01,  9.30it/s]CUDA error: device kernel image is invalid',
  },
  {
    code: 'hicache-host-memory',
    title: 'the hierarchical cache asks for more host memory than is free',
    state: 'crashed',
    weight: 'root',
    signs: [
      'Not enough host memory available. Requesting {asked} GB but only have {free} GB free',
      'Not enough host memory available',
      'Please reduce the size of the hierarchical cache',
      'The host memory should be larger than the device memory with the current protocol',
    ],
    phase: 'kv-pool-allocation',
    restartSameFlagsHelps: false,
    remedy: ({ numbers }) => ({
      flag: '--hicache-size',
      // The engine keeps 10 GB of the host for others; each rank asks for the size, all at once.
      value: numbers['free'] === undefined ? '' : String(Math.max(0, Math.floor(numbers['free'] * 0.9))),
      text: 'Make the host part of the cache smaller (its size counts once for each rank), or free host memory: reserved HugePages (vm.nr_hugepages) and container limits count as taken.',
    }),
    meaning: 'Each rank pins host memory for the hierarchical cache, and the host has less free than they ask for.',
    mistakenFor: 'GPU memory: the fraction has no part in it, nor does this cache raise how many requests decode at once',
    example:
      'ValueError: Not enough host memory available. Requesting 64.00 GB but only have 41.20 GB free. Please reduce the size of the hierarchical cache.',
  },
  {
    code: 'pinned-memory-limit',
    title: 'host memory cannot be pinned',
    state: 'crashed',
    weight: 'root',
    signs: ['cudaHostRegister{}failed', 'cudaHostAlloc{}failed', 'cudaHostRegister{}invalid argument', 'failed to pin memory'],
    phase: 'kv-pool-allocation',
    restartSameFlagsHelps: false,
    remedy: advise(
      'Allow pinned memory (ulimit -l unlimited; in docker --ulimit memlock=-1), or make the hierarchical cache smaller.',
    ),
    meaning: 'Page-locked memory is limited on this machine (memlock, a container, WSL).',
    mistakenFor: 'a shortage of host memory',
    example: 'RuntimeError: cudaHostRegister failed: out of memory',
  },
  {
    code: 'init-oom-reported-by-nccl',
    title: 'the GPU is full, and NCCL is the first to notice',
    state: 'crashed',
    weight: 'root',
    signs: [
      "Cuda failure {}'out of memory'",
      'Cuda failure {}out of memory',
      'Failed to CUDA calloc',
      'Failed to CUDA malloc',
      'NCCL WARN Cuda failure{}out of memory',
      'NCCL WARN Failed to CUDA',
    ],
    phase: 'distributed-init',
    restartSameFlagsHelps: false,
    remedy: ({ facts }) => ({
      flag: byEngine(facts, '--mem-fraction-static', '--gpu-memory-utilization'),
      value: '',
      text: 'Look who holds memory on the GPU (nvidia-smi) and stop it; else lower the memory fraction, or shrink NCCL’s buffers (NCCL_BUFFSIZE).',
    }),
    meaning: 'NCCL allocates buffers on the GPU and could not. The error looks like a network fault and is not one.',
    mistakenFor: 'a NCCL, network or driver fault: the decisive line stands below "Last error"',
    example: "Last error:\nCuda failure 2 'out of memory'",
  },
  {
    code: 'unified-memory-exhausted',
    title: 'the GPU took the memory that the host needed too',
    state: 'crashed',
    weight: 'root',
    signs: ['NVRM: {}Out of memory [NV_ERR_NO_MEMORY]', 'NV_ERR_NO_MEMORY', 'NVRM: {}_memdescAllocInternal'],
    phase: 'serving',
    restartSameFlagsHelps: false,
    remedy: ({ facts }) => {
      const fraction = fractionOf(facts);
      return {
        flag: byEngine(facts, '--mem-fraction-static', '--gpu-memory-utilization'),
        value: fraction === undefined ? '' : Math.max(0.3, fraction - 0.1).toFixed(2),
        text: 'Lower the memory fraction and the tokens of one batch, stop what else runs on the machine, and leave some GiB for the host.',
      };
    },
    meaning:
      'On a machine whose GPU and host share memory, an allocation of the GPU starved the host. The server’s own log just stops; the kernel’s log says why.',
    mistakenFor: 'a sudden power loss or a driver bug',
    example:
      'NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from _memdescAllocInternal(pMemDesc)',
  },
];
