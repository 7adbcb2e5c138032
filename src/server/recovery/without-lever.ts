/**
 * A launch without what a rule forbids, and with everything else that it has gained. Pure; for `aerie policy add` on a live run.
 * Promises: the lever that breaks the rule goes, and no other, unless the launch would then not live; what cannot keep the rule by any
 * flag is said, with the engine's reason.
 */
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import type { Plan } from '../../capacity/plan-launch.ts';
import { isAtLeast } from '../../engine/version.ts';
import { checkPolicy, describeRule } from '../../spec/policy.ts';
import type { PolicyRule } from '../../spec/run.ts';
import { applyChanges, changeFlag, flagValue } from './changes.ts';
import { classify, FRACTION } from './judge-candidate.ts';
import { memoryLevers } from './memory-levers.ts';
import { predictor, summarise } from './predict-candidate.ts';
import type { Flags, LaunchChange, PredictedLaunch, RecoveryBasis, RecoveryLimits, RecoveryQuestion } from './recovery.ts';
import { fractionsDown, fractionsUp } from './search-memory.ts';

export interface WithoutLeverQuestion {
  readonly engine: PlannedEngine;
  /** '' = not known. */
  readonly version: string;
  readonly flags: Flags;
  readonly rule: PolicyRule;
  /** All rules of the run; the new one is among them or not. */
  readonly policy?: readonly PolicyRule[];
  readonly basis?: RecoveryBasis | undefined;
  readonly limits?: RecoveryLimits;
}

export type WithoutLever =
  | {
      /** Empty: these flags keep the rule already. */
      readonly changes: readonly LaunchChange[];
      /** What the launch holds then, or that nobody can say. */
      readonly because: string;
      readonly predicted: PredictedLaunch | undefined;
    }
  | { readonly cannot: string };

export function withoutLever(question: WithoutLeverQuestion): WithoutLever {
  const asked = asRecovery(question);
  const predict = predictor(asked);
  const before = predict(question.flags);
  if (isKept(question, asked, question.flags, before))
    return { changes: [], because: 'the launch keeps the rule already', predicted: before && summarise(before) };
  const changes = removeLever(question);
  if (typeof changes === 'string') return { cannot: changes };
  const { flags } = applyChanges(question.flags, {}, changes);
  const plan = predict(flags);
  if (plan === undefined && changes.length === 0)
    return {
      cannot: `nothing is known of the model or the GPU, so nobody can say which flags keep "${describeRule(question.rule)}"`,
    };
  const keeps = plan === undefined || isKept(question, asked, flags, plan);
  if (keeps && (plan === undefined || plan.prediction.verdict === 'fits'))
    return { changes, because: sayPools(before, plan), predicted: plan && summarise(plan) };
  const fitted = makeFit(question, changes, before);
  return 'cannot' in fitted && plan !== undefined && !keeps ? { cannot: sayStillBroken(question, asked, flags, plan) } : fitted;
}

function asRecovery({ engine, version, flags, basis, limits, rule, policy = [] }: WithoutLeverQuestion): RecoveryQuestion {
  const rules = policy.includes(rule) ? policy : [...policy, rule];
  return { engine, version, tries: [], policy: rules, basis, given: flags, ...(limits === undefined ? {} : { limits }) };
}

/** Proven to be kept: what nobody can tell is not. */
function isKept({ rule }: WithoutLeverQuestion, asked: RecoveryQuestion, flags: Flags, plan: Plan | undefined): boolean {
  return checkPolicy([rule], classify(asked, flags, plan)).every(({ kept }) => kept);
}

function sayStillBroken({ rule }: WithoutLeverQuestion, asked: RecoveryQuestion, flags: Flags, plan: Plan): string {
  const [check] = checkPolicy([rule], classify(asked, flags, plan));
  const why = plan.launch.kvType.isOverridden ? ` (${plan.launch.kvType.because})` : '';
  return `no flag keeps the rule "${describeRule(rule)}": ${check?.because ?? ''}${why}`;
}

/** The changes that take the lever out, none where it is a figure that follows from others; a sentence where no flag could. */
function removeLever(question: WithoutLeverQuestion): LaunchChange[] | string {
  const { engine, flags, rule } = question;
  const { forbid, require: required, min, max } = rule;
  const at = { engine, flags };
  const why = `${describeRule(rule)}: ${rule.because} (${rule.by})`;
  const changes: LaunchChange[] = [];
  if (forbid?.kvCache !== undefined || required?.kvCache !== undefined || min?.kvCacheBits !== undefined)
    changes.push(changeFlag(at, 'kv-cache-dtype', kvTypeFor(question), why));
  if (forbid?.weights !== undefined || required?.weights !== undefined || min?.weightBits !== undefined) {
    if (flagValue(engine, flags, 'quantization') === undefined)
      return `the weights are in the format of the checkpoint, and no flag changes what "${describeRule(rule)}" asks of them`;
    changes.push(changeFlag(at, 'quantization', undefined, why));
  }
  const fraction = max?.memoryFraction ?? min?.memoryFraction;
  if (fraction !== undefined) changes.push(changeFlag(at, FRACTION[engine], fraction, why));
  if (max?.runningRequests !== undefined)
    changes.push(changeFlag(at, engine === 'sglang' ? 'max-running-requests' : 'max-num-seqs', max.runningRequests, why));
  if (max?.contextTokens !== undefined && engine === 'vllm')
    changes.push(changeFlag(at, 'max-model-len', max.contextTokens, why));
  return changes.filter(({ from, to }) => from !== to);
}

/** Explicit 16 bits: `auto` becomes FP8 where the checkpoint says so. SGLang before 0.5.4 has no word for it; auto is
 * safe there up to 0.5.2, and the plan says whether it is in 0.5.3. */
function kvTypeFor({ engine, version, rule }: WithoutLeverQuestion): string | undefined {
  const wanted = rule.require?.kvCache ?? (engine === 'sglang' ? 'bf16' : 'bfloat16');
  const hasWord = engine === 'vllm' || (isAtLeast(version, [0, 5, 4]) ?? true);
  return hasWord || !/^bf(loat)?16$/.test(wanted) ? wanted : undefined;
}

function sayPools(before: Plan | undefined, after: Plan | undefined): string {
  if (after === undefined) return 'nothing is known of the model or the GPU, so what the launch holds then is told by its log';
  const { poolTokens, freeAfterGraphsGiB } = after.prediction;
  const was = before === undefined ? '' : ` (${before.prediction.poolTokens} before)`;
  return `the pool then holds ${poolTokens} tokens${was}, and ${freeAfterGraphsGiB.toFixed(2)} GiB are left after graph capture`;
}

/** It would not live: neutral levers, the fraction first, as few as will do. */
function makeFit(question: WithoutLeverQuestion, removed: readonly LaunchChange[], before: Plan | undefined): WithoutLever {
  const { engine } = question;
  const asked = asRecovery(question);
  const predict = predictor(asked);
  const { flags } = applyChanges(question.flags, {}, removed);
  const plan = predict(flags);
  const fraction = plan?.launch.memoryFraction ?? 0.9;
  const why = plan?.prediction.because ?? '';
  for (const settings of memoryLevers(asked, flags)) {
    for (const to of [...fractionsDown(fraction), ...fractionsUp(fraction, 0).reverse()]) {
      const at = { engine, flags };
      const more = settings.map((one) => changeFlag(at, one.name, one.to, `${why}; ${one.because}`));
      if (to !== fraction) more.push(changeFlag(at, FRACTION[engine], to, why));
      const all = [...removed, ...more];
      const changed = applyChanges(question.flags, {}, all).flags;
      const found = predict(changed);
      const { verdict, freeAfterGraphsGiB, prefillNeedGiB } = found?.prediction ?? {};
      const lives = verdict === 'fits' && (freeAfterGraphsGiB ?? 0) >= (prefillNeedGiB?.high ?? 0);
      if (found === undefined || !lives || breaksAny(asked, changed, found)) continue;
      return { changes: all, because: sayPools(before, found), predicted: summarise(found) };
    }
  }
  return { cannot: `without the lever the launch does not live (${why}), and no other lever makes room` };
}

function breaksAny(asked: RecoveryQuestion, flags: Flags, plan: Plan): boolean {
  return checkPolicy(asked.policy, classify(asked, flags, plan)).some(({ kept, known }) => known && !kept);
}
