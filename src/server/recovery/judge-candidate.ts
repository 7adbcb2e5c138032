/**
 * May this change be made? Pure. Promises: a lever that changes the numerics, or that nobody knows, is never pulled unless a rule is
 * written for what it touches and the launch keeps it; no rule of the run is broken; no launch that failed is tried again; the
 * memory fraction stays between 0 and 1.
 */
import type { Plan } from '../../capacity/plan-launch.ts';
import { findLever } from '../../engine/levers.ts';
import { checkPolicy, decideLever, describeRule, type LaunchClass, type PolicyCheck } from '../../spec/policy.ts';
import { applyChanges, canonicalName, describeChange, flagValue, launchKey } from './changes.ts';
import type { Predict } from './predict-candidate.ts';
import type { Env, Flags, LaunchChange, LaunchTry, RecoveryQuestion } from './recovery.ts';

export const FRACTION = { sglang: 'mem-fraction-static', vllm: 'gpu-memory-utilization' } as const;
const RUNNING = { sglang: 'max-running-requests', vllm: 'max-num-seqs' } as const;

export interface Judged {
  readonly flags: Flags;
  readonly env: Env;
  readonly plan: Plan | undefined;
  /** Why it may not be; '' where it may. */
  readonly refusal: string;
}

/** `last`: the launch that the changes are made to. */
export function judgeCandidate(question: RecoveryQuestion, changes: readonly LaunchChange[], predict: Predict): Judged {
  const last = question.tries.at(-1);
  const { flags, env } = applyChanges(last?.flags ?? question.given, last?.env ?? {}, changes);
  const early = refuseLever(question, changes) || refuseRepeat(question, flags, env) || refuseFraction(question, flags);
  if (early !== '') return { flags, env, plan: undefined, refusal: early };
  const plan = predict(flags);
  const refusal =
    findNewRefusal(plan, predict(last?.flags ?? question.given)) ||
    refuseByRule(question, changes, classify(question, flags, plan));
  return { flags, env, plan, refusal };
}

/** Levers that only a person, or a rule, may pull. */
function refuseLever({ engine, policy }: RecoveryQuestion, changes: readonly LaunchChange[]): string {
  for (const change of changes) {
    if (change.what === 'env') continue;
    const lever = findLever(engine, canonicalName(engine, change.name));
    if (decideLever(lever, policy) !== 'ask') continue;
    const touches = lever.effect === 'unknown' ? lever.because : `it changes the answers (${lever.because})`;
    return `${touches}, and no rule of the run is written for it: a person decides`;
  }
  return '';
}

function refuseRepeat({ engine, tries }: RecoveryQuestion, flags: Flags, env: Env): string {
  const key = launchKey(engine, flags, env);
  const before = tries.findIndex((one) => launchKey(engine, one.flags, one.env) === key);
  return before === -1 ? '' : `launch ${before + 1} had these flags and ended: ${tries[before]?.verdict.title ?? ''}`;
}

function refuseFraction({ engine }: RecoveryQuestion, flags: Flags): string {
  const fraction = flagValue(engine, flags, FRACTION[engine]);
  if (fraction === undefined || (Number(fraction) > 0 && Number(fraction) < 1)) return '';
  return `a memory fraction lies between 0 and 1, and ${String(fraction)} does not`;
}

/** What the engine would not take of these flags and did of the last ones. */
function findNewRefusal(plan: Plan | undefined, before: Plan | undefined): string {
  return plan?.launch.refusals.find((refusal) => before?.launch.refusals.includes(refusal) !== true) ?? '';
}

function refuseByRule({ engine, policy }: RecoveryQuestion, changes: readonly LaunchChange[], launch: LaunchClass): string {
  const changesNumerics = changes.some(
    ({ what, name }) => what === 'flag' && /numerics|unknown/.test(findLever(engine, canonicalName(engine, name)).effect),
  );
  // What nobody can tell was not known of the launch that ran either; only a change of the numerics must prove that it keeps the rule.
  const broken = checkPolicy(policy, launch).find(({ kept, known }) => !kept && (known || changesNumerics));
  return broken === undefined ? '' : quoteRule(broken);
}

export function quoteRule({ rule, because }: PolicyCheck): string {
  return `the rule "${describeRule(rule)}" of ${rule.by} (${rule.because}) does not allow it: ${because}`;
}

/** What policy is asked about: from the plan where there is one, else what the flags and the log alone say. */
export function classify(question: RecoveryQuestion, flags: Flags, plan: Plan | undefined): LaunchClass {
  if (plan === undefined) return classifyByFlags(question, flags);
  const { launch, prediction, shape } = plan;
  const published = question.basis?.shape.quantisation.method;
  return {
    kvCacheDtype: launch.kvType.type,
    weightBits: shape.quantisation.weightBits,
    areWeightsAsPublished: shape.quantisation.method === published,
    figures: {
      contextTokens: launch.contextTokens,
      poolTokens: prediction.poolTokens,
      runningRequests: prediction.maxRunningRequests,
      memoryFraction: launch.memoryFraction,
      freeGiB: prediction.freeAfterGraphsGiB,
    },
  };
}

function classifyByFlags({ engine, tries }: RecoveryQuestion, flags: Flags): LaunchClass {
  const written = flagValue(engine, flags, 'kv-cache-dtype');
  const last: LaunchTry | undefined = tries.at(-1);
  const isUnchanged = last !== undefined && flagValue(engine, last.flags, 'kv-cache-dtype') === written;
  const said = isUnchanged ? last.verdict.facts.kvCacheDtype : undefined;
  const figures = Object.entries({
    memoryFraction: flagValue(engine, flags, FRACTION[engine]),
    runningRequests: flagValue(engine, flags, RUNNING[engine]),
  }).flatMap(([name, value]) => (typeof value === 'number' ? [[name, value] as const] : []));
  return { kvCacheDtype: said ?? (written === undefined ? '' : String(written)), figures: Object.fromEntries(figures) };
}

/** The changes of a step in one phrase. */
export function describeChanges(changes: readonly LaunchChange[]): string {
  return changes.map(describeChange).join(', ');
}
