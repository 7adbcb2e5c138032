/**
 * What ends a launch from outside its script: a fault on cue, a rank that somebody killed, a signal.
 *
 *   starting ──SIGTERM──► ended at once, by the default action
 *   serving  ──SIGTERM──► draining (SGLang) ──no request left──► the whole tree is killed
 *            ──SIGTERM──► ended (vLLM)
 */

import { isAtLeast } from '../../../engine/version.ts';
import type { Lookalike } from '../serve-generation.ts';
import { dieOfLostRank, dieOfRank, killTree } from './deaths.ts';
import { framesOf } from './frames.ts';
import { dieOfMemory, type Launching } from './launching.ts';
import { drainSglang } from './serve-sglang.ts';
import type { StartFault } from './stage.ts';
import { shutDownVllm } from './start-vllm.ts';

/** A fault of a phase, on cue. */
export function strikeStart(launching: Launching, fault: StartFault): void {
  const { stage, plan, dying } = launching;
  const { weightsGiBPerGpu: weights, freeBeforeLoadGiB: before } = plan().prediction;
  switch (fault.do) {
    case 'die':
      if (fault.exitCode !== undefined) process.exit(fault.exitCode);
      process.kill(process.pid, 'SIGKILL');
      break;
    case 'oom':
      dieOfMemory(launching, Math.max(0.5, weights / 64), Math.min(0.3, before));
      break;
    case 'fail':
      dieOfRank(dying, { rank: 0, frames: framesOf(plan().launch.engine, stage.phase()), error: fault.text });
      break;
    default: // a hang and slowness are waited out where they strike
  }
}

/**
 * A rank that somebody else ended. In its start the parent notices; at work SGLang notices from 0.5.10 on; before, the front end lives on and
 * answers nothing.
 */
export function loseRank(
  launching: Launching,
  lookalike: Lookalike | undefined,
  lost: { rank: number; pid: number; how: number | NodeJS.Signals },
): void {
  const { plan, stage, dying } = launching;
  const { engine, version } = plan().launch;
  const isAtWork = stage.phase() === 'serving' || stage.phase() === 'draining';
  const goesUnnoticed = engine === 'sglang' && isAtWork && isAtLeast(version, [0, 5, 10]) === false;
  if (!goesUnnoticed) dieOfLostRank(dying, lost.rank, lost.pid, lost.how);
  lookalike?.serving?.fail({ do: 'schedulers-die', when: {} });
}

export function holdSignals(launching: Launching, remaining: () => number, isServing: () => boolean): void {
  const { scenario, plan, dying, stage } = launching;
  let isTold = false;
  process.on('SIGTERM', () => {
    if (scenario.ignoresSigterm || isTold) return;
    isTold = true;
    if (!isServing()) {
      // The default action, while it starts: no word. The ranks go with it.
      process.removeAllListeners('SIGTERM');
      process.kill(process.pid, 'SIGTERM');
    } else if (plan().launch.engine === 'sglang') {
      void drainSglang(launching, remaining);
    } else {
      shutDownVllm(launching);
    }
  });
  process.on('SIGINT', () => {
    stage.say('INFO:     Shutting down');
    killTree(dying);
  });
}
