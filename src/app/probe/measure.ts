/**
 * What a probed server holds and which rules it keeps: by its log wherever the line stands, and by its own account. A server that is
 * loading or dead is measured by its log alone; where there is neither, nothing is known and nothing is claimed.
 */

import { isKnown, isSameType } from '../../base/element-type.ts';
import { formatCount } from '../../base/units.ts';
import { findEffectiveKvType } from '../../diagnosis/effective-kv-type.ts';
import type { LogFacts } from '../../diagnosis/log-facts.ts';
import { type ServerFacts, UNKNOWN_FACTS } from '../../engine/dialect.ts';
import { dialectOf } from '../../engine/dialects.ts';
import type { VerifiedLaunch } from '../../server/launch/verified-launch.ts';
import { verifyLaunch } from '../../server/launch/verify-launch.ts';
import { checkPolicy, describeRule, isBroken, type PolicyCheck } from '../../spec/policy.ts';
import type { PolicyRule } from '../../spec/run.ts';
import { classOfFacts } from '../policy/judge-launches.ts';
import { type LaunchBasis, planOf } from '../servers/launch-basis.ts';
import { sentFlags } from '../servers/launched-server.ts';
import type { ProbedCapacity, ProbedRule } from './report.ts';
import type { KnownServer } from './subject.ts';

export function capacityOf(
  log: LogFacts | undefined,
  server: ServerFacts | undefined,
  verified?: VerifiedLaunch,
): ProbedCapacity {
  return {
    poolTokens: verified?.poolTokens ?? log?.poolTokens ?? server?.poolTokens ?? 0,
    contextTokens: verified?.contextTokens ?? log?.contextTokens ?? server?.contextTokens ?? 0,
    maxRunningRequests: verified?.maxRunningRequests ?? log?.maxRunningRequests ?? server?.sequences ?? 0,
    freeAfterGraphsGiB: log?.freeAfterGraphsGiB,
    kvType: verified?.kvType ?? findEffectiveKvType({ log, server }),
    differs: differences(log, server),
  };
}

/** A log of an earlier start, or a server that rounds to pages: both are said, and the log's is taken. */
function differences(log: LogFacts | undefined, server: ServerFacts | undefined): string[] {
  if (log === undefined || server === undefined) return [];
  const both = (what: string, logged: number | undefined, told: number) =>
    logged === undefined || logged === 0 || told === 0 || logged === told
      ? []
      : [`${what}: the log says ${formatCount(logged)}, the server ${formatCount(told)}`];
  const { kvCacheDtype } = server;
  const isOther = log.kvCacheDtype !== undefined && isKnown(kvCacheDtype) && !isSameType(log.kvCacheDtype, kvCacheDtype);
  return [
    ...both('pool tokens', log.poolTokens, server.poolTokens),
    ...both('context', log.contextTokens, server.contextTokens),
    ...both('requests at once', log.maxRunningRequests, server.sequences),
    ...(isOther ? [`KV cache: the log says ${log.kvCacheDtype}, the server ${kvCacheDtype}`] : []),
  ];
}

export interface Measured {
  readonly verified: VerifiedLaunch | undefined;
  readonly policy: readonly ProbedRule[];
}

export interface MeasureInput {
  readonly known: KnownServer | undefined;
  readonly engine: 'sglang' | 'vllm' | undefined;
  readonly log: LogFacts | undefined;
  readonly server: ServerFacts | undefined;
  /** Of a launch of Aerie's own; undefined where it could not be had in time. */
  readonly basis: LaunchBasis | undefined;
}

/** Log and account by the arithmetic of a launch that Aerie made; an attached server by what it says and what its log says. */
export function measureServer({ known, engine, log, server, basis }: MeasureInput): Measured {
  const rules = known?.policy ?? [];
  if (log === undefined && server === undefined) return { verified: undefined, policy: rules.map(untold) };
  const facts = server ?? UNKNOWN_FACTS;
  if (engine === undefined) return { verified: undefined, policy: checkPolicy(rules, classOfFacts(facts)).map(tell) };
  const { launch } = known ?? {};
  const verified = verifyLaunch({
    ...{ engine, log, server: facts, policy: rules },
    plan: launch === undefined || basis === undefined ? undefined : planOf(basis, launch.flags),
    flags: launch === undefined || known === undefined ? {} : sentFlags(launch, dialectOf(engine), known.run.model),
  });
  return { verified, policy: verified.policy.map(tell) };
}

function tell(check: PolicyCheck): ProbedRule {
  const { rule, kept, because } = check;
  return { rule: describeRule(rule), kept, broken: isBroken(check), because, decided: `${rule.because}; decided by ${rule.by}` };
}

function untold(rule: PolicyRule): ProbedRule {
  return tell({ rule, kept: false, known: false, because: 'neither a log nor the server could be read' });
}
