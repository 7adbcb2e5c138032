/**
 * How the real launchers die of a failure: what they print, in which order, and what is left to say their exit status. The words
 * are formats; tracebacks name the functions in which each failure arises, because diagnosis reads those.
 */

import { cudaTotalGiB } from '../../../capacity/estimate-memory.ts';
import { isAtLeast } from '../../../engine/version.ts';
import type { LaunchScenario } from './machine-scenario.ts';
import type { LifePlan } from './plan-life.ts';
import type { Ranks } from './ranks.ts';
import type { Stage } from './stage.ts';

export interface Dying {
  readonly stage: Stage;
  readonly plan: () => LifePlan;
  readonly ranks: () => Ranks | undefined;
  readonly scenario: Pick<LaunchScenario, 'leavesRanks'>;
}

/** `module.function` from the outermost to the innermost. */
export type Frames = readonly string[];

export interface Failure {
  readonly rank: number;
  readonly frames: Frames;
  /** The last line of the traceback: `RuntimeError: …`. */
  readonly error: string;
}

const SITE = '/opt/venv/lib/python3.12/site-packages';

export function renderTraceback({ frames, error }: Pick<Failure, 'frames' | 'error'>): string {
  const lines = frames.map((frame, at) => {
    const [file = '', name = '', code = 'pass'] = frame.split(' | ');
    return `  File "${SITE}/${file}", line ${300 + 37 * at}, in ${name}\n    ${code}`;
  });
  return ['Traceback (most recent call last):', ...lines, error].join('\n');
}

/** A rank raises: its traceback, the parent's word, and the whole tree is killed, the parent by itself. */
export function dieOfRank(dying: Dying, failure: Failure): never {
  const { stage, plan } = dying;
  const { launch } = plan();
  const isStarted = stage.phase() === 'serving' || stage.phase() === 'draining';
  if (launch.engine === 'vllm') {
    const traceback = renderTraceback(failure).split('\n');
    const where = { rank: failure.rank, level: 'ERROR', place: 'core.py:588' } as const;
    stage.say(isStarted ? 'EngineCore encountered a fatal error.' : 'EngineCore failed to start.', where);
    for (const line of traceback) stage.say(line, where);
    return endVllm(dying, isStarted);
  }
  stage.say(`Scheduler hit an exception: ${renderTraceback(failure)}\n`, { rank: failure.rank });
  const isNewer = isAtLeast(launch.version, [0, 5, 5]) ?? true;
  stage.say(
    isStarted && isNewer
      ? 'SIGQUIT received. signum=None, frame=None. It usually means one child failed.'
      : 'Received sigquit from a child process. It usually means the child failed.',
  );
  return killTree(dying);
}

function endVllm(dying: Dying, isStarted: boolean): never {
  const { stage } = dying;
  if (isStarted) {
    const where = { level: 'ERROR', place: 'async_llm.py:480' } as const;
    stage.say('AsyncLLM output_handler failed.', where);
    stage.say(
      'vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.',
      where,
    );
  } else {
    const frames = ['vllm/v1/engine/utils.py | wait_for_engine_startup | raise RuntimeError('];
    const error =
      "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_0': 1}";
    stage.write(`${renderTraceback({ frames, error })}\n`);
  }
  dying.ranks()?.kill();
  process.exit(1);
}

/** A process of the launch is gone without a word; what its parent says of it. */
export function dieOfLostRank(dying: Dying, rank: number, pid: number, how: number | NodeJS.Signals): never {
  const { stage, plan } = dying;
  const { launch } = plan();
  const code = how === 'SIGKILL' ? -9 : how === 'SIGTERM' ? -15 : typeof how === 'number' ? how : -6;
  if (launch.engine === 'vllm') {
    stage.say(`Worker proc VllmWorker-${rank} died unexpectedly, shutting down executor.`, {
      isCore: true,
      level: 'ERROR',
      place: 'multiproc_executor.py:230',
    });
    return endVllm(dying, stage.phase() === 'serving');
  }
  if (stage.phase() === 'serving' || stage.phase() === 'draining')
    stage.say(`Subprocess scheduler_${rank} (pid=${pid}) crashed with exit code ${code}. Triggering SIGQUIT for cleanup...`);
  else if (isAtLeast(launch.version, [0, 5, 10]) ?? true)
    stage.say(
      `Rank ${rank} scheduler died during initialization (exit code: ${code}). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run \`dmesg -T | grep -i oom\` to check.`,
    );
  else {
    stage.say(`Rank ${rank} scheduler is dead. Please check if there are relevant logs.`);
    stage.say(`Exit code: ${code}`);
  }
  return killTree(dying);
}

/** SIGKILL to the children and to itself: no code of its own says why. */
export function killTree(dying: Dying): never {
  dying.ranks()?.kill();
  process.kill(process.pid, 'SIGKILL');
  process.exit(137); // not reached: the signal is there before the call returns
}

/** The allocator's words. `triedGiB` of what did not fit, `freeGiB` of what was left. */
export function outOfMemory(plan: LifePlan, rank: number, triedGiB: number, freeGiB: number): string {
  const total = cudaTotalGiB(plan.gpu);
  const mine = Math.max(0, total - freeGiB);
  const size = (GiB: number) => (GiB < 1 ? `${(GiB * 1024).toFixed(2)} MiB` : `${GiB.toFixed(2)} GiB`);
  const name = (isAtLeast(plan.launch.version, [0, 4, 6]) ?? true) ? 'torch.OutOfMemoryError' : 'torch.cuda.OutOfMemoryError';
  return [
    `${name}: CUDA out of memory. Tried to allocate ${size(triedGiB)}. GPU ${rank} has a total capacity of ${size(total)} of which`,
    `${size(Math.max(0, freeGiB))} is free. Including non-PyTorch memory, this process has ${size(mine)} memory in use.`,
    `Of the allocated memory ${size(Math.max(0, mine - 1.4))} is allocated by PyTorch, and ${size(0.21)} is reserved by PyTorch but unallocated.`,
    'If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.',
  ].join(' ');
}
