/** Memory and disk of the host: each ends a server from outside, mostly without a word of its own. */
import { advise, type Rule, setFlag } from '../rule.ts';

const SHARED_MEMORY = [
  '/dev/shm',
  'shared memory segment',
  'shm_open',
  'SharedMemory(',
  'shm_name',
  'posix_fallocate',
  'shared_memory.py',
  '/nccl-',
];

/** Bash's own word for signal 9. A parent that cleans up after another cause kills its children in the same way. */
const BARE_KILL: Pick<Rule, 'signs' | 'weight'> = {
  weight: 'symptom',
  signs: [{ text: 'Killed', isWhole: true }],
};

export const HOST_RULES: readonly Rule[] = [
  {
    code: 'dev-shm-exhausted',
    title: '/dev/shm is too small or full',
    state: 'crashed',
    weight: 'root',
    signs: [
      'Error while creating shared memory segment /dev/shm',
      'Error while creating shared memory segment',
      'Error while attaching to shared memory segment',
      'posix_fallocate failed',
      'insufficient shared memory (shm)',
      'unable to allocate shared memory',
      'unable to write to file </torch_',
      'unable to mmap {} bytes from file </torch_',
    ],
    restartSameFlagsHelps: false,
    remedy: setFlag(
      '--shm-size',
      '32g',
      'Give the container shared memory (docker run --ipc=host, or --shm-size=32g; in Kubernetes an emptyDir with medium Memory), and delete leftovers of killed servers (/dev/shm/nccl-*, psm_*).',
    ),
    meaning: 'Ranks exchange data through files in /dev/shm. Docker gives 64 MB of it unless told otherwise.',
    mistakenFor: 'a NCCL or network fault ("unhandled system error"), or a full disk',
    example: 'NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Wk2xTq (size 9637888)',
  },
  {
    code: 'dev-shm-exhausted',
    title: '/dev/shm is too small or full',
    state: 'crashed',
    weight: 'root',
    signs: ['No space left on device', 'Bus error', 'exit code: -7'],
    where: { near: SHARED_MEMORY },
    restartSameFlagsHelps: false,
    remedy: setFlag(
      '--shm-size',
      '32g',
      'Give the container shared memory (docker run --ipc=host, or --shm-size=32g), and delete leftovers of killed servers (/dev/shm/nccl-*, psm_*).',
    ),
    meaning: 'Ranks exchange data through files in /dev/shm. Docker gives 64 MB of it unless told otherwise.',
    mistakenFor: 'a full disk',
    example: 'OSError: [Errno 28] No space left on device: /dev/shm/psm_2c1f',
  },
  {
    code: 'disk-full',
    title: 'a disk is full',
    state: 'crashed',
    weight: 'root',
    isAlsoWarned: true,
    signs: ['No space left on device', 'Errno 28', 'Disk quota exceeded', 'Errno 122', 'Not enough free disk space to download'],
    unlessNear: SHARED_MEMORY,
    restartSameFlagsHelps: false,
    remedy: advise(
      'Free space where it is missing (df -h; the model cache, ~/.cache, /tmp, logs), or move it: HF_HOME, TMPDIR, TRITON_CACHE_DIR, VLLM_CACHE_ROOT.',
    ),
    meaning: 'A file could not be written: the model cache, a kernel cache, a temporary directory or the log.',
    mistakenFor: 'a damaged download',
    example: "OSError: [Errno 28] No space left on device: '/tmp/tmp3vq1'",
  },
  {
    code: 'bus-error-mmap-weights',
    title: 'a weight file could not be read through its memory map (SIGBUS)',
    state: 'crashed',
    weight: 'root',
    signs: ['Bus error', 'SIGBUS', 'exit code: -7', 'exitcode: -7', 'exit code 135'],
    unlessNear: ['/dev/shm', 'insufficient shared memory'],
    phase: 'weight-loading',
    restartSameFlagsHelps: false,
    remedy: advise(
      'Compare the weight files with the sizes in the hub’s index (a truncated download is the commonest), look for disk errors in dmesg, and check that neither /dev/shm nor the container’s memory is full.',
    ),
    meaning:
      'Weights are mapped into memory; reading a page of the file failed. The file is shorter than its header says, the file system is full, or the disk has errors.',
    mistakenFor: 'a crash of the engine’s code',
    example: 'Fatal Python error: Bus error',
  },
  {
    code: 'host-ram-oom-kill',
    title: 'the kernel killed the process because the host ran out of memory',
    state: 'crashed',
    weight: 'root',
    signs: [
      'Out of memory: Killed process',
      'Memory cgroup out of memory',
      'oom-kill:constraint',
      'oom_kill',
      'oom_reaper',
      'OOMKilled',
      'exit code: -9',
      'exitcode: -9',
      'exit code -9',
      'exit code 137',
      'exited with code 137',
      'Signals.SIGKILL',
      'signal SIGKILL',
      'killed by the OOM killer',
      'due to the node running low on memory',
      'SIGKILL by the',
      'task {n}: Out Of Memory',
    ],
    restartSameFlagsHelps: false,
    remedy: setFlag(
      '--hicache-size',
      '',
      'Read dmesg for "Killed process" to be sure. Then: a smaller hierarchical cache (its size counts once for each rank), a higher limit of the container (docker run --memory) or of the job (srun --mem), fewer loader threads, no copy of the weights in /dev/shm.',
    ),
    meaning:
      'The process got signal 9 without a word of its own, which is what the kernel’s out-of-memory killer does. Someone’s kill -9 looks the same.',
    mistakenFor: 'a crash of the engine, or GPU memory',
    example:
      'Rank 3 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer.',
  },
  {
    code: 'host-ram-oom-kill',
    title: 'the kernel killed the process because the host ran out of memory',
    state: 'crashed',
    ...BARE_KILL,
    restartSameFlagsHelps: false,
    remedy: setFlag(
      '--hicache-size',
      '',
      'Read dmesg for "Killed process" to be sure. Then: a smaller hierarchical cache (its size counts once for each rank), a higher limit of the container (docker run --memory) or of the job (srun --mem), fewer loader threads, no copy of the weights in /dev/shm.',
    ),
    meaning:
      'The process got signal 9 without a word of its own, which is what the kernel’s out-of-memory killer does. Someone’s kill -9 looks the same.',
    mistakenFor: 'a crash of the engine, or GPU memory',
    example:
      'Rank 3 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer.',
  },
  {
    code: 'host-memory-exhausted',
    title: 'the host has no memory left for an allocation',
    state: 'crashed',
    weight: 'root',
    signs: [
      'Errno 12] Cannot allocate memory',
      'std::bad_alloc',
      'DefaultCPUAllocator: not enough memory',
      "DefaultCPUAllocator: can't allocate memory",
    ],
    restartSameFlagsHelps: false,
    remedy: setFlag(
      '--hicache-size',
      '',
      'Look at free -g and the limit of the container; a smaller hierarchical cache (its size counts once for each rank), fewer loader threads, no swap-space or CPU offload.',
    ),
    meaning: 'An allocation of host memory failed, or a process could not be started for lack of it.',
    mistakenFor: 'GPU memory',
    example: 'OSError: [Errno 12] Cannot allocate memory',
  },
];
