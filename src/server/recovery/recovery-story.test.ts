/** Kimi-K2.5 (INT4) on 8 × RTX PRO 6000, SGLang with TP 8, at 0.93: it died with 0.82 GiB left. What follows, from its log to the flags. */
import { describe, expect, it } from 'vitest';
import { verdictOf } from '../../../test/support/diagnose-log.ts';
import { findGpu } from '../../capacity/gpus.ts';
import { findKnownModel } from '../../capacity/known-models.ts';
import { readModelConfig } from '../../capacity/read-model-config.ts';
import type { Verdict } from '../../diagnosis/verdict.ts';
import type { PolicyRule } from '../../spec/run.ts';
import { applyChanges, describeChange } from './changes.ts';
import { decideRecovery } from './decide-recovery.ts';
import type { Flags, LaunchTry, RecoveryBasis, RecoveryQuestion, RecoveryStep } from './recovery.ts';

const known = findKnownModel('moonshotai/Kimi-K2.5');
if (known === undefined) throw new Error('the table has no Kimi-K2.5');
const basis: RecoveryBasis = { shape: readModelConfig(known), gpu: findGpu('RTX PRO 6000'), observations: [] };

const GIVEN: Flags = { tp: 8, 'mem-fraction-static': 0.93, 'kv-cache-dtype': 'bf16' };
const OWNER: PolicyRule = { forbid: { kvCache: 'below-16-bit' }, because: 'FP8 degrades it noticeably', by: 'model owner' };

/** What SGLang 0.5.8 printed at 0.93, down to the allocation that failed in the middle of a prefill. */
const LOG = `[2026-02-01 10:00:00 TP0] Load weight begin. avail mem=94.04 GB
[2026-02-01 10:01:26 TP0] Load weight end. type=KimiK25ForConditionalGeneration, dtype=torch.bfloat16, avail mem=21.71 GB, mem usage=72.33 GB.
[2026-02-01 10:01:27 TP0] Using KV cache dtype: torch.bfloat16
[2026-02-01 10:01:27 TP0] KV Cache is allocated. #tokens: 231127, KV size: 15.13 GB
[2026-02-01 10:01:27 TP0] Memory pool end. avail mem=4.58 GB
[2026-02-01 10:02:00 TP0] max_total_num_tokens=231127, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=0.82 GB
[2026-02-01 10:02:10] The server is fired up and ready to roll!
[2026-02-01 10:02:20 TP0] Decode batch, #running-req: 120, #token: 100000, token usage: 0.43, cuda graph: True, gen throughput (token/s): 900.00, #queue-req: 0, 
[2026-02-01 10:40:00 TP3] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/sglang/srt/managers/scheduler.py", line 1620, in run_batch
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 3 has a total capacity of 94.97 GiB of which 843.12 MiB is free.
[2026-02-01 10:40:01] SIGQUIT received. signum=None, frame=None. It usually means one child failed.
`;

const verdict: Verdict = verdictOf(LOG);

function tryOf(flags: Flags, more: Partial<LaunchTry> = {}): LaunchTry {
  return { flags, env: {}, verdict, wasReady: true, answered: 900, readyAt: 0, endedAt: 2_280_000, ...more };
}

function decide(tries: readonly LaunchTry[], more: Partial<RecoveryQuestion> = {}): RecoveryStep {
  return decideRecovery({ engine: 'sglang', version: '0.5.8', tries, policy: [OWNER], basis, given: GIVEN, ...more });
}

function relaunch(step: RecoveryStep): Extract<RecoveryStep, { kind: 'relaunch' }> {
  if (step.kind !== 'relaunch') throw new Error(`${step.kind}: ${step.because}`);
  return step;
}

describe('the launch at 0.93', () => {
  it('died of memory at work', () => {
    expect(verdict).toMatchObject({ cause: 'runtime-oom-activation', restartSameFlagsHelps: false });
    expect(verdict.facts).toMatchObject({ freeAfterGraphsGiB: 0.82, freeBeforeLoadGiB: 94.04, poolTokens: 231_127 });
  });

  it('keeps its fraction and its pool, with 256 requests at most: that frees 2.85 GiB', () => {
    const step = relaunch(decide([tryOf(GIVEN)]));
    expect(step.changes.map(describeChange)).toEqual(['max-running-requests default → 256']);
    expect(step.predicted?.poolTokens).toBe(231_127);
    // 0.82 + 2.00 − 0.25 of the table + 1.09 of graphs that are not captured.
    expect(step.predicted?.freeAfterGraphsGiB).toBeCloseTo(3.67, 2);
    expect(step.predicted?.prefillNeedGiB).toBeCloseTo(2.62, 2);
    expect(step.because).toContain('3.67 GiB are left after graph capture (0.82 before), and 1.75 to 2.87 are needed');
    expect(step.changes[0]?.because).toContain('request table 2.00 → 0.25 GiB');
  });

  it('and where 1,024 requests are wanted at once, the cap does not fall below them', () => {
    const step = relaunch(decide([tryOf(GIVEN)], { limits: { inFlight: 1024 } }));
    expect(step.changes.map(describeChange)).toEqual([
      'max-running-requests default → 1024',
      'chunked-prefill-size default → 4096',
    ]);
  });

  it('if it dies again with 3.67 GiB left, more than that is asked for', () => {
    const first = relaunch(decide([tryOf(GIVEN)]));
    const { flags } = applyChanges(GIVEN, {}, first.changes);
    const facts = { ...verdict.facts, freeAfterGraphsGiB: 3.67, maxRunningRequests: 256 };
    const again = tryOf(flags, { verdict: { ...verdict, facts }, endedAt: 5_000_000 });
    const step = relaunch(decide([tryOf(GIVEN), again]));
    expect(step.predicted?.freeAfterGraphsGiB).toBeGreaterThan(3.67);
    expect(step.changes.map(describeChange)).toEqual(['max-running-requests 256 → 128', 'chunked-prefill-size default → 4096']);
  });
});
