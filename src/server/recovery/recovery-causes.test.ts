/** Every cause that diagnosis knows, with a launch that it ended: what follows. */
import { describe, expect, it } from 'vitest';
import { AT_093, KIMI, OWNER, STORY_FLAGS, tryOf, verdictFrom, verdictOfCause } from '../../../test/support/recovery-cases.ts';
import { RULES } from '../../diagnosis/rules/all.ts';
import { applyChanges, describeChange } from './changes.ts';
import { decideRecovery } from './decide-recovery.ts';
import type { Flags, LaunchTry, RecoveryQuestion, RecoveryStep } from './recovery.ts';

const decide = (tries: readonly LaunchTry[], more: Partial<RecoveryQuestion> = {}): RecoveryStep =>
  decideRecovery({ engine: 'sglang', version: '0.5.8', tries, policy: [], basis: KIMI, given: STORY_FLAGS, ...more });

function say(step: RecoveryStep): string {
  if (step.kind !== 'relaunch') return step.kind;
  return step.changes.length === 0 ? 'the same flags' : step.changes.map(describeChange).join(', ');
}

/** What follows a launch that ended so, and what follows once the same flags have been tried as often as they may. */
const SGLANG: readonly (readonly [cause: string, first: string, then: string])[] = [
  ['unbalanced-gpu-memory', 'wait-for-memory', 'give-up'],
  ['init-oom-reported-by-nccl', 'wait-for-memory', 'give-up'],
  ['pinned-memory-limit', 'give-up', ''],
  ['runtime-oom-activation', 'max-running-requests default → 256', ''],
  ['gpu-out-of-memory', 'max-running-requests default → 256', ''],
  ['cuda-graph-capture-oom', 'max-running-requests default → 256', ''],
  ['attention-workspace-oom', 'max-running-requests default → 256', ''],
  ['req-to-token-table-oom', 'max-running-requests default → 256', ''],
  ['mamba-blocks-below-max-num-seqs', 'max-running-requests default → 256', ''],
  ['profiling-oom', 'chunked-prefill-size default → 4096', ''],
  ['unified-memory-exhausted', 'mem-fraction-static 0.93 → 0.83', ''],
  ['rl-resume-memory-oom', 'mem-fraction-static 0.93 → 0.83', ''],
  ['weights-exceed-gpu-memory', 'give-up', ''],
  ['hicache-host-memory', 'give-up', ''],
  ['host-ram-oom-kill', 'give-up', ''],
  ['kv-pool-allocation-oom', 'the same flags', 'max-running-requests default → 256, chunked-prefill-size default → 4096'],
  ['decode-oom-page-size', 'the same flags', 'page-size default → 1'],
  ['prefill-pool-exhausted', 'the same flags', 'chunked-prefill-size default → 4096'],
  ['req-slots-exhausted', 'the same flags', 'max-running-requests default → 1024'],
  ['kv-accounting-leak', 'the same flags', 'give-up'],
  ['gpu-xid-13-exception', 'the same flags', 'give-up'],
  ['cuda-illegal-memory-access', 'the same flags', 'disable-cuda-graph default → on'],
  ['cuda-device-side-assert', 'the same flags', 'give-up'],
  ['missing-kernels-for-gpu', 'give-up', ''],
  ['kernel-shared-memory-limit', 'give-up', ''],
  ['kv-dtype-refused', 'give-up', ''],
  ['context-length-over-model', 'give-up', ''],
  ['trust-remote-code-needed', 'give-up', ''],
  ['dev-shm-exhausted', 'give-up', ''],
  ['cache-not-writable', 'give-up', ''],
  ['jit-toolchain-broken', 'CUDA_HOME not set → /usr/local/cuda', ''],
  ['launcher-without-main-guard', 'VLLM_WORKER_MULTIPROCESSING_METHOD not set → spawn', ''],
  ['hub-unreachable', 'the same flags', 'HF_HUB_OFFLINE not set → 1'],
  ['gated-repo-unauthorized', 'give-up', ''],
  ['gloo-wrong-interface', 'give-up', ''],
  ['nccl-init-hang', 'NCCL_P2P_DISABLE not set → 1', ''],
  ['multi-node-comm-stall', 'give-up', ''],
  ['port-in-use', 'the same flags', 'give-up'],
  ['nccl-collective-timeout', 'the same flags', 'give-up'],
  ['scheduler-stuck-watchdog', 'the same flags', 'watchdog-timeout default → 600'],
  ['scheduler-stuck-no-heartbeat', 'the same flags', 'give-up'],
  ['worker-stuck-no-progress', 'the same flags', 'give-up'],
  ['scheduler-not-admitting', 'the same flags', 'give-up'],
  ['detokenizer-crash', 'the same flags', 'give-up'],
  [
    'weights-barrier-timeout',
    'the same flags',
    'model-loader-extra-config default → {"enable_multithread_load": true, "num_threads": 16}',
  ],
  ['segmentation-fault', 'the same flags', 'give-up'],
  ['gpu-hardware-fault', 'give-up', ''],
  ['unknown', 'the same flags', 'give-up'],
];

describe('SGLang, by cause', () => {
  it.each(SGLANG)('%s: %s, then %s', (cause, first, then) => {
    const one = tryOf(verdictOfCause(cause));
    expect(say(decide([one]))).toBe(first);
    if (then === '') return;
    const often = first === 'wait-for-memory' || one.verdict.restartSameFlagsHelps === true ? 3 : 2;
    expect(say(decide(Array<LaunchTry>(often - 1).fill(one)))).toBe(first);
    expect(say(decide(Array<LaunchTry>(often).fill(one)))).toBe(then);
  });

  it('every cause that has a flag or a variable as its remedy, and every one that ends a server, has an answer that says why', () => {
    for (const rule of RULES) {
      const step = decide([tryOf(verdictFrom(rule))]);
      expect(step.because.length, rule.code).toBeGreaterThan(20);
      if (step.kind === 'give-up') expect(step.remedy, rule.code).not.toBe('');
      if (step.kind === 'relaunch') for (const { because } of step.changes) expect(because, rule.code).not.toBe('');
    }
  });

  it('a server that ended while its log shows it at work is started again once, whatever its log says of its load', () => {
    for (const rule of RULES.filter(({ state }) => /serving|degraded|ready|initializing/.test(state))) {
      const one = tryOf(verdictFrom(rule));
      expect(say(decide([one])), rule.code).toBe('the same flags');
      expect(say(decide([one, one])), rule.code).toBe('give-up');
    }
  });
});

describe('too small a fraction at the start', () => {
  const flags: Flags = { tp: 8, 'mem-fraction-static': 0.75, 'kv-cache-dtype': 'bf16' };
  const { poolTokens: _, freeAfterGraphsGiB: __, ...facts } = { ...AT_093, isReady: false };
  const verdict = verdictOfCause('weights-exceed-static-fraction', { facts });

  it('goes up, to the highest that leaves a prefill its room', () => {
    const step = decide([tryOf(verdict, { flags, wasReady: false })]);
    // 1 − 21.71 ÷ 94.04 = 0.769 for the weights alone; graphs are only estimated here.
    expect(say(step)).toBe('mem-fraction-static 0.75 → 0.91');
    expect(step.kind === 'relaunch' && step.predicted?.poolTokens).toBeGreaterThan(200_000);
  });

  it('without a model it is what the weights need and 0.02', () => {
    expect(say(decide([tryOf(verdict, { flags, wasReady: false })], { basis: undefined }))).toBe(
      'mem-fraction-static 0.75 → 0.79',
    );
  });

  it('or the minimum that the engine prints', () => {
    const printed = verdictOfCause('weights-exceed-static-fraction', {
      facts: { ...facts, freeBeforeLoadGiB: 94.04 },
      numbers: { least: 0.8 },
    });
    expect(say(decide([tryOf(printed, { flags })], { basis: undefined }))).toBe('mem-fraction-static 0.75 → 0.82');
  });

  it('but not where less was free than at the launch before: that is somebody else’s memory', () => {
    const less = verdictOfCause('weights-exceed-static-fraction', { facts: { ...facts, freeBeforeLoadGiB: 71.2 } });
    const tries = [tryOf(verdictOfCause('kv-accounting-leak')), tryOf(less, { flags })];
    const step = decide(tries);
    expect(step.kind).toBe('wait-for-memory');
    expect(step.because).toContain('71.20 GiB were free before the weights, and 94.04 at an earlier launch');
    expect(step.because).toContain('22.84 GiB');
  });
});

describe('host memory', () => {
  const flags: Flags = { ...STORY_FLAGS, 'mem-fraction-static': 0.88, 'enable-hierarchical-cache': true, 'hicache-size': 48 };
  const { poolTokens: _, ...facts } = AT_093;
  const killed = tryOf(verdictOfCause('host-ram-oom-kill', { facts }), { flags });

  it('the size that the host has for each rank', () => {
    // (300 − 10) × 0.9 ÷ 8 ranks.
    expect(say(decide([killed], { limits: { hostFreeGB: 300 } }))).toBe('hicache-size 48 → 32');
  });

  it('half, where nobody knows what the host has', () => {
    expect(say(decide([killed]))).toBe('hicache-size 48 → 24');
  });

  it('no cache at all where the size would be smaller than the pool, which SGLang 0.5.8 refuses', () => {
    const step = decide([killed], { limits: { hostFreeGB: 60 } });
    expect(say(step)).toBe('enable-hierarchical-cache on → left out, hicache-size 48 → left out');
    expect(step.kind === 'relaunch' && step.passedOver.join()).toContain('must be larger than the pool');
  });

  it('by what the engine itself found free', () => {
    const text = 'ValueError: Not enough host memory available. Requesting 48.00 GB but only have 230.00 GB free.';
    const refused = tryOf(verdictOfCause('hicache-host-memory', { facts, text }), { flags });
    expect(say(decide([refused]))).toBe('hicache-size 48 → 25');
  });
});

describe('policy', () => {
  it('a refused KV type becomes 16 bits only where a rule is written for it', () => {
    const one = tryOf(verdictOfCause('kv-dtype-refused'), { flags: { tp: 8, 'kv-cache-dtype': 'fp8_e5m2' } });
    const step = decide([one]);
    expect(step.kind).toBe('give-up');
    expect(step.kind === 'give-up' && step.passedOver.join()).toContain('no rule of the run is written for it');
    expect(say(decide([one], { policy: [OWNER] }))).toBe('kv-cache-dtype fp8_e5m2 → bf16');
  });

  it('a rule for the pool keeps the fraction up, one for running requests keeps the cap off', () => {
    const one = tryOf(verdictOfCause('runtime-oom-activation'));
    const many = { min: { runningRequests: 1000 }, because: 'many short requests', by: 'owner' };
    const step = decide([one], { policy: [many] });
    expect(say(step)).not.toContain('max-running-requests');
    const pool = { min: { poolTokens: 231_000 }, because: 'long prompts', by: 'owner' };
    const both = decide([one], { policy: [many, pool] });
    expect(say(both)).not.toContain('mem-fraction-static');
    const low = { max: { memoryFraction: 0.9 }, because: 'others use this card', by: 'owner' };
    expect(say(decide([one], { policy: [low] }))).toBe('mem-fraction-static 0.93 → 0.9');
  });

  it('says whose rule stood in the way', () => {
    const one = tryOf(verdictOfCause('runtime-oom-activation'));
    const rules = [
      { min: { poolTokens: 231_000 }, because: 'long prompts', by: 'Ada' },
      { min: { runningRequests: 1000 }, because: 'many short requests', by: 'Bo' },
    ];
    const step = decide([one], { policy: rules });
    expect(say(step)).toBe('cuda-graph-max-bs default → 256, chunked-prefill-size default → 4096');
    const strict = decide([one], { policy: [...rules, { max: { memoryFraction: 0.9 }, because: 'shared', by: 'Di' }] });
    expect(strict.kind).toBe('give-up');
    expect(strict.kind === 'give-up' && strict.passedOver.join('\n')).toContain('of Ada (long prompts) does not allow it');
  });
});

describe('vLLM', () => {
  const flags: Flags = { 'tensor-parallel-size': 8, 'gpu-memory-utilization': 0.93, max_model_len: 32_768 };
  const { freeAfterGraphsGiB: _, poolTokens: __, ...plain } = AT_093;
  const facts = { ...plain, engine: 'vllm' as const, maxRunningRequests: 1024, contextTokens: 32_768 };
  const ask = (cause: string, more: Partial<RecoveryQuestion> = {}, numbers = {}) =>
    say(
      decide([tryOf(verdictOfCause(cause, { facts, numbers }), { flags })], {
        engine: 'vllm',
        version: '0.16.0',
        given: flags,
        ...more,
      }),
    );

  it.each([
    ['runtime-oom-activation', 'gpu-memory-utilization 0.93 → 0.87'],
    ['cuda-graph-capture-oom', 'gpu-memory-utilization 0.93 → 0.91'],
  ])('%s: %s', (cause, changes) => {
    expect(ask(cause)).toBe(changes);
  });

  it('a context that does not fit is cut to what the engine says, where no request of the run is longer', () => {
    const numbers = { length: 16_384 };
    expect(ask('max-model-len-exceeds-kv-capacity', { limits: { longestRequestTokens: 8_192 } }, numbers)).toBe(
      'max_model_len 32768 → 16384',
    );
    expect(ask('max-model-len-exceeds-kv-capacity', { limits: { longestRequestTokens: 20_000 } }, numbers)).toContain(
      'gpu-memory-utilization 0.93 → ',
    );
  });

  it('a little less free than asked for is asked for; much less is waited for', () => {
    expect(ask('gpu-memory-held-by-other-process', {}, { free: 90, total: 97.9 })).toBe('gpu-memory-utilization 0.93 → 0.9');
    expect(ask('gpu-memory-held-by-other-process', {}, { free: 24.5, total: 79.1 })).toBe('wait-for-memory');
  });
});

describe('a model that nobody knows, by rules of thumb', () => {
  const runtime = verdictOfCause('runtime-oom-activation');
  const play = (verdict: LaunchTry['verdict'], more: Partial<RecoveryQuestion> = {}): string[] => {
    const tries: LaunchTry[] = [];
    const steps: string[] = [];
    let { flags } = tryOf(verdict);
    for (;;) {
      tries.push(tryOf(verdict, { flags }));
      const step = decide([...tries], { basis: undefined, ...more });
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
