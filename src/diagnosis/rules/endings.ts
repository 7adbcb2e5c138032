/**
 * How servers end: wrappers and echoes, which prove that it ended and seldom why. They lose to every other cause.
 */
import { advise, type Rule, setFlag } from '../rule.ts';

export const ENDING_RULES: readonly Rule[] = [
  {
    code: 'scheduler-stuck-watchdog',
    title: 'the watchdog killed a forward pass that took too long',
    state: 'crashed',
    weight: 'symptom',
    signs: [
      { text: 'Scheduler watchdog timeout', not: ['self.soft=True'] },
      { text: 'Watchdog timeout (self.watchdog_timeout', not: ['self.soft=True'] },
    ],
    phase: 'serving',
    restartSameFlagsHelps: null,
    remedy: ({ facts }) => ({
      flag: '--watchdog-timeout',
      value: String(2 * Number(facts.arguments['watchdog_timeout'] ?? 300)),
      text: 'Read the stacks printed above it. If a kernel was being compiled, delete a half-built cache (~/.cache/flashinfer, ~/.cache/torch_extensions) and raise --watchdog-timeout for the first start; if ranks wait for each other, look for Xid in dmesg. Then start again.',
    }),
    meaning:
      'SGLang ends a server whose batch made no progress for the time of --watchdog-timeout: a kernel or a collective hangs, or a first compilation took longer.',
    mistakenFor: 'a missing py-spy: that only spoils the stack dump, not the server',
    example: 'Watchdog timeout (self.watchdog_timeout=300)',
  },
  {
    code: 'detokenizer-crash',
    title: 'the detokenizer ended',
    state: 'crashed',
    weight: 'symptom',
    signs: ['DetokenizerManager hit an exception'],
    phase: 'serving',
    restartSameFlagsHelps: true,
    remedy: advise('Give each request an id of its own, upgrade, and start again.'),
    meaning: 'The process that turns ids into text stopped: ids outside the vocabulary, an id used twice, or no memory.',
    mistakenFor: 'a fault of the scheduler',
    example: 'DetokenizerManager hit an exception: Traceback (most recent call last):',
  },
  {
    code: 'weights-barrier-timeout',
    title: 'some ranks did not finish loading in time',
    state: 'crashed',
    weight: 'symptom',
    signs: ["but there are other ranks that didn't finish loading"],
    phase: 'weight-loading',
    restartSameFlagsHelps: true,
    remedy: setFlag(
      '--model-loader-extra-config',
      '{"enable_multithread_load": true, "num_threads": 16}',
      'If a rank failed, its own error stands above. If the disk is slow, start again (files are cached now), load with several threads, or move the model to a local disk.',
    ),
    meaning: 'The ranks wait for each other at the end of the load, for 300 s or 480 s. One is slow or dead.',
    mistakenFor: 'an out of memory, because the message names it as a possibility',
    example:
      "ValueError: TP rank 1 could finish the model loading, but there are other ranks that didn't finish loading. It is likely due to unexpected failures (e.g., OOM) or a slow node.",
  },
  {
    code: 'segmentation-fault',
    title: 'a process of the engine died of a segmentation fault',
    state: 'crashed',
    weight: 'symptom',
    signs: ['Segmentation fault', 'exit code: -11', 'exitcode: -11', 'SIGSEGV', 'exit code 139'],
    restartSameFlagsHelps: null,
    remedy: advise(
      'Look at the native stack above it; reinstall engine, torch and kernels as one set; try without graphs and without custom all-reduce.',
    ),
    meaning: 'Native code read an address that is not there.',
    mistakenFor: 'a lack of memory',
    example: 'Fatal Python error: Segmentation fault',
  },
  {
    code: 'died-without-a-word',
    title: 'the process ended and its log does not say why',
    state: 'crashed',
    weight: 'wrapper',
    signs: [],
    restartSameFlagsHelps: null,
    remedy: ({ numbers }) => ({ flag: '', value: '', text: whereToLook(numbers['exitStatus']) }),
    meaning:
      'What kills from outside leaves no line: the kernel for lack of memory, a container limit, a driver, a person, or the start that never reached the engine.',
    mistakenFor: 'a hang: the log of a dead server is as still as that of a server that waits',
    example: '',
  },
  {
    code: 'workers-gone',
    title: 'the front end lives, and its workers are gone',
    state: 'hung',
    weight: 'root',
    signs: [],
    phase: 'serving',
    restartSameFlagsHelps: true,
    remedy: advise(
      'Stop the whole family of processes, see that the GPU memory is free again, and start it again. dmesg and memory.events of the container say whether the kernel killed the workers.',
    ),
    meaning:
      'The process that answers the port has no scheduler or engine process any more. Its health check can go on saying 200, and no request ever ends.',
    mistakenFor: 'a healthy server, because the port is open and health says 200',
    example: '',
  },
  {
    code: 'front-end-mute',
    title: 'the process lives and its port does not answer',
    state: 'hung',
    weight: 'symptom',
    signs: [],
    phase: 'serving',
    restartSameFlagsHelps: true,
    remedy: advise(
      'Wait as long as the engine’s watchdog (300 s, then half of it more). If nothing moves by then: py-spy dump --pid, stop it, and start it again.',
    ),
    meaning:
      'It had been ready, and now the port is closed, or health gives no answer or 503. While counters move that is a scheduler in one long step, and no fault.',
    mistakenFor: 'a dead server, where a single step takes longer than the 20 s that a health check waits',
    example: '',
  },
  {
    code: 'engine-core-init-failed',
    title: 'the engine ended during its start, and the cause stands above',
    state: 'crashed',
    weight: 'wrapper',
    signs: [
      'Engine core initialization failed. See root cause above',
      'Engine core initialization failed',
      'EngineCore failed to start',
      'Engine process failed to start',
      'WorkerProc initialization failed',
      'WorkerProc failed to start',
    ],
    restartSameFlagsHelps: false,
    remedy: advise(
      'Read upwards to the first error of the process that failed; if the log begins later, take its whole output (2>&1, from the first line).',
    ),
    meaning: 'The web server reports that its engine process did not start. That is all it knows.',
    mistakenFor: 'the cause itself',
    example: "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}",
  },
];

/** By the shell's exit status; 128 and the number of a signal where one ended it. */
function whereToLook(exitStatus: number | undefined): string {
  if (exitStatus === 137)
    return 'Something sent SIGKILL: read dmesg for "Killed process", and memory.events of the cgroup for oom_kill. If it was the kernel: a smaller hierarchical cache (its size counts once for each rank), or a higher limit of the container.';
  return 'Read dmesg (grep -i -e "killed process" -e oom -e xid) and memory.events of the cgroup, then the last lines of the log; run the command by hand if it ended at once.';
}

/** Proofs that the server, or a part it cannot live without, ended; they name no cause. */
export const DEATHS: readonly string[] = [
  'Scheduler hit an exception',
  'TokenizerManager hit an exception',
  'DataParallelController hit an exception',
  'Received sigquit from a child process',
  'SIGQUIT received.',
  'Subprocess {} crashed with exit code',
  'scheduler is dead. Please check',
  'died during initialization',
  'Initialization failed. warmup error',
  'Initialization failed. Please see the error',
  'EngineCore encountered a fatal error',
  'EngineCore hit an exception',
  'DistBackendError: NCCL error',
  'RuntimeError: NCCL error',
  'EngineCore encountered an issue',
  'EngineDeadError',
  'AsyncEngineDeadError',
  'WorkerProc hit an exception',
  'died unexpectedly',
  'Engine loop has died',
  'Background loop has errored already',
  'Engine background task failed',
  'engine is already dead',
  'MQLLMEngine is already dead',
  'Fatal Python error',
  'terminate called after throwing',
  'Application startup failed. Exiting',
  '(core dumped)',
  'Process EngineCore',
  'in run_engine_core',
  'in run_scheduler_process',
  'Process group watchdog thread terminated with exception',
  'To avoid data inconsistency, we are taking the entire process down',
];

export const UNKNOWN: Rule = {
  code: 'unknown',
  title: 'no rule explains this log',
  state: 'crashed',
  weight: 'wrapper',
  signs: [],
  restartSameFlagsHelps: null,
  remedy: advise(
    'Take the whole log from the first line of the start (2>&1), every rank’s, and the kernel’s (dmesg | grep -i -e xid -e oom); ask the engine’s issues for the first error in it.',
  ),
  meaning:
    'Something is wrong and no known cause fits. What was looked at is listed with the answer; the nearest guess is not given.',
  mistakenFor: 'a healthy server',
  example: '',
};

export const NONE: Rule = {
  code: 'none',
  title: 'nothing is wrong',
  state: 'ready',
  weight: 'root',
  signs: [],
  restartSameFlagsHelps: null,
  remedy: advise('Nothing to do.'),
  meaning: 'The log is that of a healthy server, whatever warnings, import errors or tracebacks stand in it.',
  mistakenFor: 'a fault, because of the word error in a warning',
  example: '',
};
