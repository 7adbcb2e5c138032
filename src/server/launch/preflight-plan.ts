/** What arithmetic and the rules of the run file say of a launch that has not begun. Pure. */
import type { Plan } from '../../capacity/plan-launch.ts';
import { findFlag, VLLM_LINE } from '../../engine/launching.ts';
import { checkPolicy, describeRule, isBroken, type LaunchClass, type PolicyCheck } from '../../spec/policy.ts';
import type { PolicyRule, ServerSpec } from '../../spec/run.ts';
import type { PreflightCheck, PreflightInput } from './preflight-input.ts';

/** A person may know better than the formulas, so a plan that does not fit is a warning. */
export function checkPlan({ plan }: PreflightInput): PreflightCheck {
  if (plan === undefined)
    return {
      name: 'plan',
      verdict: 'unknown',
      says: 'what this launch will hold was not computed: model, GPU or version is not known',
      remedy: 'Write gpu: and engine-version: in the run file.',
    };
  const { verdict, because, poolTokens, poolTokensRange: range, freeAfterGraphsGiB } = plan.prediction;
  const pool = `a pool of ${poolTokens} tokens (${Math.round(range.low)} to ${Math.round(range.high)}), ${freeAfterGraphsGiB.toFixed(2)} GiB left`;
  if (verdict === 'fits') return { name: 'plan', verdict: 'ok', says: `predicted: ${pool}`, remedy: '' };
  const words = {
    'refuses-to-start': 'will not start',
    'dies-under-load': 'will start and die under load',
    'too-small': 'will be too small',
  };
  return {
    name: 'plan',
    verdict: 'warning',
    says: `predicted: it ${words[verdict]}: ${because}`,
    remedy: 'aerie plan shows the nearest launch that works.',
  };
}

/** The planned launch against the rules, with what the engine makes of its flags: `auto` may be FP8, and an explicit type may be overridden. */
export function policyBeforeLaunch(
  server: Pick<ServerSpec, 'flags'>,
  plan: Plan | undefined,
  policy: readonly PolicyRule[],
): readonly PolicyCheck[] {
  return checkPolicy(policy, plan === undefined ? writtenClass(server) : plannedClass(plan));
}

function plannedClass({ launch, shape, prediction, areWeightsAsPublished }: Plan): LaunchClass {
  return {
    kvCacheDtype: launch.kvType.type,
    weightBits: shape.quantisation.weightBits,
    areWeightsAsPublished,
    figures: {
      contextTokens: launch.contextTokens,
      poolTokens: prediction.poolTokens,
      runningRequests: prediction.maxRunningRequests,
      memoryFraction: launch.memoryFraction,
      freeGiB: prediction.freeAfterGraphsGiB,
    },
  };
}

/** Without a plan only what is written counts; `auto` is whatever the engine makes of it. */
function writtenClass({ flags }: Pick<ServerSpec, 'flags'>): LaunchClass {
  const type = findFlag(flags, ['kv-cache-dtype'], VLLM_LINE);
  const fraction = Number(findFlag(flags, ['mem-fraction-static', 'gpu-memory-utilization'], VLLM_LINE));
  return {
    kvCacheDtype: typeof type === 'string' && type.toLowerCase() !== 'auto' ? type : 'unknown',
    ...(Number.isFinite(fraction) ? { figures: { memoryFraction: fraction } } : {}),
  };
}

/** Proven broken is refused, in the words of who made the rule; what only the running server can tell is verified then. */
export function checkPolicies({ policy, plan }: PreflightInput): PreflightCheck[] {
  return policy.map((check): PreflightCheck => {
    const { rule, kept, known, because } = check;
    const isEstimate = isAboutEstimates(rule);
    const words = `${describeRule(rule)}: ${because}`;
    if (kept) return { name: 'policy', verdict: 'ok', says: words, remedy: '' };
    if (!known) return { name: 'policy', verdict: 'unknown', says: `${words}; asked again when the server is up`, remedy: '' };
    const why = plan === undefined || rule.forbid?.kvCache === undefined ? '' : ` (${plan.launch.kvType.because})`;
    const remedy = `${rule.because} (decided by ${rule.by}). Change flags: so that the rule is kept.`;
    return { name: 'policy', verdict: isBroken(check) && !isEstimate ? 'refused' : 'warning', says: `${words}${why}`, remedy };
  });
}

/** Figures that a plan estimates and only the running server has: a rule about them alone is enforced there. */
const ESTIMATES = new Set(['poolTokens', 'runningRequests', 'freeGiB']);

function isAboutEstimates({ forbid, require: required, min, max }: PolicyRule): boolean {
  const limits = Object.keys({ ...min, ...max });
  return forbid === undefined && required === undefined && limits.length > 0 && limits.every((name) => ESTIMATES.has(name));
}
