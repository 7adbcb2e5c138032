/** Whatever a server says when it ends: recovery ends too, and changes nothing that it may not. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runs } from '../../../test/support/property-runs.ts';
import { AT_093, KIMI, OWNER, STORY_FLAGS, verdictFrom } from '../../../test/support/recovery-cases.ts';
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import { RULES } from '../../diagnosis/rules/all.ts';
import { findLever } from '../../engine/levers.ts';
import { MOST_TRIES } from './bounds.ts';
import { applyChanges, canonicalName, flagValue, launchKey } from './changes.ts';
import { decideRecovery } from './decide-recovery.ts';
import type { Env, Flags, LaunchTry, RecoveryQuestion, RecoveryStep } from './recovery.ts';

const FRACTION = { sglang: 'mem-fraction-static', vllm: 'gpu-memory-utilization' } as const;
const GIVEN: Readonly<Record<PlannedEngine, readonly Flags[]>> = {
  sglang: [
    STORY_FLAGS,
    { 'tp-size': 8, 'mem-frac': 0.99, 'kv-cache-dtype': 'fp8_e4m3', 'enable-hierarchical-cache': true, 'hicache-size': 48 },
    { 'tensor-parallel-size': 8, 'max-running-requests': 64, 'chunked-prefill-size': 1024, 'attention-backend': 'triton' },
  ],
  vllm: [
    { 'tensor-parallel-size': 8, 'gpu-memory-utilization': 0.93 },
    { tp: 8, gpu_memory_utilization: 0.06, max_model_len: '32k', quantization: 'fp8' },
  ],
};

interface Ending {
  readonly rule: number;
  readonly free: number | undefined;
  readonly before: number | undefined;
  readonly value: string | undefined;
  readonly wasReady: boolean;
  readonly lived: number;
}

const ending: fc.Arbitrary<Ending> = fc.record({
  rule: fc.nat(RULES.length - 1),
  free: fc.option(fc.double({ min: 0, max: 8, noNaN: true }), { nil: undefined }),
  before: fc.option(fc.constantFrom(94.04, 94.1, 60.5), { nil: undefined }),
  // What a log makes of a remedy: numbers of any kind, and none.
  value: fc.option(fc.constantFrom('', '0', '-1', '1.5', '0.5', '0.999999', '1e9', 'NaN', '4096', 'x'), { nil: undefined }),
  wasReady: fc.boolean(),
  lived: fc.nat(50 * 60_000),
});

function endOf(flags: Flags, env: Env, one: Ending, at: number): LaunchTry {
  const rule = RULES[one.rule] ?? RULES[0];
  if (rule === undefined) throw new Error('there are no rules');
  const { freeAfterGraphsGiB: _, freeBeforeLoadGiB: __, ...plain } = AT_093;
  const facts = {
    ...plain,
    ...(one.free === undefined ? {} : { freeAfterGraphsGiB: one.free }),
    ...(one.before === undefined ? {} : { freeBeforeLoadGiB: one.before }),
  };
  const verdict = verdictFrom(rule, { facts });
  const remedy = one.value === undefined ? verdict.remedy : { ...verdict.remedy, value: one.value };
  return {
    ...{ flags, env, verdict: { ...verdict, remedy }, wasReady: one.wasReady, answered: 1000 },
    ...{ readyAt: one.wasReady ? at : undefined, endedAt: at + one.lived },
  };
}

function launchAfter(last: LaunchTry, step: RecoveryStep): { flags: Flags; env: Env } {
  return step.kind === 'relaunch' ? applyChanges(last.flags, last.env, step.changes) : last;
}

function checkStep(question: RecoveryQuestion, last: LaunchTry, step: RecoveryStep): void {
  const { engine, tries, given, policy } = question;
  expect(step.because.length).toBeGreaterThan(10);
  if (step.kind !== 'relaunch') {
    expect(step.remedy).not.toBe('');
    return;
  }
  const after = launchAfter(last, step);
  const key = (one: { flags: Flags; env: Env }) => launchKey(engine, one.flags, one.env);
  const hopeless = tries.filter(({ verdict }) => verdict.restartSameFlagsHelps === false && /crashed|hung/.test(verdict.state));
  expect(hopeless.map(key)).not.toContain(key(after));
  if (step.changes.length > 0) expect(tries.map(key)).not.toContain(key(after));
  const fraction = flagValue(engine, after.flags, FRACTION[engine]);
  if (fraction !== undefined && fraction !== flagValue(engine, given, FRACTION[engine])) {
    expect(Number(fraction)).toBeGreaterThan(0);
    expect(Number(fraction)).toBeLessThan(1);
  }
  for (const { what, name, from, to, because } of step.changes) {
    expect(because).not.toBe('');
    expect(from).not.toBe(to);
    if (what === 'env') continue;
    const { effect, subject } = findLever(engine, canonicalName(engine, name));
    // A rule about the KV cache is the only one here that can let a lever of the numerics be pulled, and only to keep it.
    if (effect === 'numerics' || effect === 'unknown') expect([subject, policy.length, to]).toEqual(['kv-cache', 1, 'bf16']);
    if (/fraction|utilization|requests|seqs|chunk|batched|max-model-len/.test(name))
      expect(`${because} ${step.because}`).toMatch(/\d/);
  }
}

it('ends within five launches, repeats nothing that failed hopelessly, leaves the numerics alone, and says why', () => {
  fc.assert(
    fc.property(
      fc.constantFrom<PlannedEngine>('sglang', 'vllm'),
      fc.nat(2),
      fc.boolean(),
      fc.boolean(),
      fc.array(ending, { minLength: MOST_TRIES + 3, maxLength: MOST_TRIES + 3 }),
      (engine, which, isKnown, hasRule, endings) => {
        const all = GIVEN[engine];
        const given = all[which % all.length] ?? {};
        const version = engine === 'sglang' ? '0.5.8' : '0.16.0';
        let launch: { flags: Flags; env: Env } = { flags: given, env: {} };
        const tries: LaunchTry[] = [];
        for (const [at, one] of endings.entries()) {
          const last = endOf(launch.flags, launch.env, one, at * 60 * 60_000);
          tries.push(last);
          const question: RecoveryQuestion = {
            ...{ engine, version, tries: [...tries], policy: hasRule ? [OWNER] : [], given },
            ...(isKnown ? { basis: KIMI } : {}),
            limits: { inFlight: 32, longestRequestTokens: 16_384 },
          };
          const step = decideRecovery(question);
          checkStep(question, last, step);
          if (step.kind === 'give-up') return;
          launch = launchAfter(last, step);
        }
        throw new Error(`${tries.length} launches, and no end`);
      },
    ),
    { numRuns: runs(60) },
  );
});

it('an hour of service with many answers begins the count anew', () => {
  const crash = endOf(STORY_FLAGS, {}, endingOf('kv-accounting-leak'), 0);
  const hour = 60 * 60_000;
  const good = Array.from({ length: 12 }, (_, at) => ({
    ...crash,
    readyAt: at * 3 * hour,
    endedAt: at * 3 * hour + 2 * hour,
    wasReady: true,
  }));
  const ask = (tries: readonly LaunchTry[]) =>
    decideRecovery({ engine: 'sglang', version: '0.5.8', tries, policy: [], basis: KIMI, given: STORY_FLAGS });
  expect(ask(good)).toMatchObject({ kind: 'relaunch', changes: [] });
  const short = good.map((one) => ({ ...one, endedAt: one.readyAt + 10 * 60_000 }));
  expect(ask(short).kind).toBe('give-up');
  expect(ask(short).because).toContain('12 launches have ended, and 5 is the most');
});

function endingOf(cause: string): Ending {
  const rule = RULES.findIndex(({ code }) => code === cause);
  return { rule, free: 5, before: 94.04, value: undefined, wasReady: true, lived: 1000 };
}
