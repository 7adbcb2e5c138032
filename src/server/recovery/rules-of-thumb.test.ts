/** A server whose model nobody knows dies of memory again and again: by rules of thumb, step by step. */
import { describe, expect, it } from 'vitest';
import { AT_093, STORY_FLAGS, tryOf, verdictOfCause } from '../../../test/support/recovery-cases.ts';
import { applyChanges, describeChange } from './changes.ts';
import { decideRecovery } from './decide-recovery.ts';
import type { LaunchTry, RecoveryStep } from './recovery.ts';

function say(step: RecoveryStep): string {
  return step.kind === 'relaunch' ? step.changes.map(describeChange).join(', ') : step.kind;
}

describe('a model that nobody knows, by rules of thumb', () => {
  const runtime = verdictOfCause('runtime-oom-activation');
  const play = (verdict: LaunchTry['verdict']): string[] => {
    const tries: LaunchTry[] = [];
    const steps: string[] = [];
    let { flags } = tryOf(verdict);
    for (;;) {
      tries.push(tryOf(verdict, { flags }));
      const step = decideRecovery({ engine: 'sglang', version: '0.5.8', tries: [...tries], policy: [], given: STORY_FLAGS });
      steps.push(say(step));
      if (step.kind !== 'relaunch') return steps;
      flags = applyChanges(flags, {}, step.changes).flags;
    }
  };

  it('the table of requests where it frees what the log lacks, then the fraction by what is missing', () => {
    // 2.5 − 0.82 GiB are missing: 1.68, and 1,792 requests × 262,148 × 4 bytes are 1.75; 1.68 ÷ 94.04 is 0.02.
    expect(play(runtime)).toEqual([
      'max-running-requests default → 256',
      'mem-fraction-static 0.93 → 0.91',
      'mem-fraction-static 0.91 → 0.89',
      'mem-fraction-static 0.89 → 0.87',
      'give-up',
    ]);
  });

  it('one lever and then the usual step where the log says nothing', () => {
    const facts = { ...AT_093, freeAfterGraphsGiB: undefined, freeBeforeLoadGiB: undefined };
    const text = 'torch.OutOfMemoryError: CUDA out of memory.';
    const { freeAfterGraphsGiB: _, freeBeforeLoadGiB: __, ...silent } = facts;
    expect(play(verdictOfCause('runtime-oom-activation', { facts: silent, text }))).toEqual([
      'max-running-requests default → 256',
      'mem-fraction-static 0.93 → 0.89',
      'mem-fraction-static 0.89 → 0.85',
      'mem-fraction-static 0.85 → 0.81',
      'give-up',
    ]);
  });
});
