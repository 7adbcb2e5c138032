/**
 * What a server that came up really is: against what was asked, what was predicted, and what policy allows. Pure.
 * Promises: figures are those that the server itself printed or measured, wherever in its log they stand; what nobody says is unknown
 * and never taken from the plan; a warning says what it means and what to change.
 */
import type { Plan } from '../../capacity/plan-launch.ts';
import { findEffectiveKvType } from '../../diagnosis/effective-kv-type.ts';
import { checkPolicy, type LaunchClass } from '../../spec/policy.ts';
import { findRewritten } from './compare-flags.ts';
import type { PredictedPool, VerifiedFigures, VerifiedLaunch, VerifyInput } from './verified-launch.ts';
import { warnOfLaunch } from './warn-of-launch.ts';

export function verifyLaunch(input: VerifyInput): VerifiedLaunch {
  const { engine, log, server, plan, flags, policy } = input;
  const kvType = findEffectiveKvType({ log, server, plan });
  const poolTokens = log?.poolTokens ?? server.poolTokens;
  const figures = {
    kvType,
    poolTokens,
    serverTokens: wholeOf(poolTokens, plan),
    contextTokens: log?.contextTokens ?? server.contextTokens,
    maxRunningRequests: log?.maxRunningRequests ?? server.sequences,
    freeAfterGraphsGiB: log?.freeAfterGraphsGiB,
    predicted: plan === undefined || poolTokens === 0 ? undefined : comparePool(poolTokens, plan),
    rewritten: log === undefined ? [] : findRewritten(engine, flags, log.arguments),
  };
  const launchClass = classOf(input, figures);
  return { ...figures, launchClass, policy: checkPolicy(policy, launchClass), warnings: warnOfLaunch(input, figures) };
}

/** Data-parallel groups have a pool each, and the engine prints one. */
function wholeOf(poolTokens: number, plan: Plan | undefined): number {
  const prediction = plan?.prediction;
  if (prediction === undefined || prediction.poolTokens === 0) return poolTokens;
  return Math.round(poolTokens * (prediction.serverTokens / prediction.poolTokens));
}

function comparePool(poolTokens: number, { prediction }: Plan): PredictedPool {
  const { poolTokens: predicted, poolTokensRange: range } = prediction;
  return {
    poolTokens: predicted,
    range,
    differencePercent: predicted === 0 ? 100 : (poolTokens / predicted - 1) * 100,
    insideRange: poolTokens >= range.low && poolTokens <= range.high,
  };
}

/** Weights are what the checkpoint is: no server tells their bits, and no flag of a plan changes them unseen. */
function classOf({ log, plan }: VerifyInput, figures: VerifiedFigures): LaunchClass {
  const { kvType, contextTokens, poolTokens, maxRunningRequests, freeAfterGraphsGiB } = figures;
  const fraction = Number(
    log?.arguments['mem_fraction_static'] ?? log?.arguments['gpu_memory_utilization'] ?? plan?.launch.memoryFraction,
  );
  const weights =
    plan === undefined
      ? {}
      : { weightBits: plan.shape.quantisation.weightBits, areWeightsAsPublished: plan.areWeightsAsPublished };
  return {
    kvCacheDtype: kvType.type,
    ...weights,
    figures: {
      ...(contextTokens > 0 ? { contextTokens } : {}),
      ...(poolTokens > 0 ? { poolTokens } : {}),
      ...(maxRunningRequests > 0 ? { runningRequests: maxRunningRequests } : {}),
      ...(freeAfterGraphsGiB === undefined ? {} : { freeGiB: freeAfterGraphsGiB }),
      ...(Number.isFinite(fraction) ? { memoryFraction: fraction } : {}),
    },
  };
}
