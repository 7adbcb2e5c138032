/** Flags that a rule forbids are not started; the sentence is the rule's own. */
import { AerieError } from '../../base/errors.ts';
import { policyBeforeLaunch } from '../../server/launch/preflight-plan.ts';
import type { Flags } from '../../server/recovery/recovery.ts';
import { describeRule } from '../../spec/policy.ts';
import type { PolicyRule, RunSpec, ServerSpec } from '../../spec/run.ts';
import { type LaunchBasis, planOf } from './launch-basis.ts';

export interface ForbiddenQuestion {
  readonly run: RunSpec;
  readonly server: ServerSpec;
  readonly basis: LaunchBasis;
  readonly policy: readonly PolicyRule[];
}

/** Throws `policy.forbids` where the launch is known to break a rule; what only a running server can tell is asked again then. */
export function refuseForbiddenLaunch({ run, server, basis, policy }: ForbiddenQuestion, flags: Flags): void {
  const checks = policyBeforeLaunch({ flags }, planOf(basis, flags), policy);
  const broken = checks.find(({ known, kept }) => known && !kept);
  if (broken === undefined) return;
  const { rule, because } = broken;
  throw new AerieError('policy.forbids', `${server.name} would break a rule of run ${run.name}: ${because}.`, {
    because: `${rule.because} (decided by ${rule.by})`,
    evidence: [describeRule(rule)],
    remedy: `Change flags: of ${server.name} in ${run.file}, or ask ${rule.by}. Nothing was started.\nWhat the rule costs, and what else reaches the same: aerie plan ${run.file}`,
  });
}
