/** A rule that was added is kept by the launches to come: their books get the change that keeps it. */
import type { Happening } from '../../base/events.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { EngineLauncher } from '../../server/launch/engine-launcher.ts';
import type { PolicyRule, RunSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { policyInForce } from '../policy-in-force.ts';
import { isLaunched } from '../server/choose-servers.ts';
import { openIdleLauncher } from '../servers/idle-launcher.ts';

export interface KeepingRule {
  readonly run: RunSpec;
  readonly ledger: Ledger;
  readonly context: OperationContext;
  readonly emit: (happening: Happening) => void;
}

/** A server whose next launch would break the rule, whatever flag is changed. */
export interface UnkeptRule {
  readonly server: string;
  readonly because: string;
}

/** For the holder of the run alone. A launch that no flag can make keep the rule is named, and refused when it is next started. */
export async function keepRule(rule: PolicyRule, keeping: KeepingRule): Promise<readonly UnkeptRule[]> {
  const unkept: UnkeptRule[] = [];
  for (const launcher of await launchersOf(keeping)) {
    const because = await launcher.keepRule(rule);
    if (because !== '') unkept.push({ server: launcher.name, because });
  }
  return unkept;
}

/**
 * At a start: whoever added a rule may have died before the books had it. Throws `policy.forbids` where a launch would break a rule
 * even so, also when nothing is left to ask: rules of the run file are checked as early (`servers/plan-launches.ts`).
 */
export async function keepAddedRules(keeping: KeepingRule): Promise<void> {
  const added = keeping.ledger.addedRules();
  if (added.length === 0) return;
  for (const launcher of await launchersOf(keeping)) {
    for (const { rule } of added) await launcher.keepAddedRule(rule);
    await launcher.refuseForbidden();
  }
}

async function launchersOf({ run, ledger, context, emit }: KeepingRule): Promise<EngineLauncher[]> {
  const launchers: EngineLauncher[] = [];
  for (const server of run.servers.filter(isLaunched)) {
    const policy = () => policyInForce(run, ledger);
    launchers.push(await openIdleLauncher({ run, server, context, emit, policy }));
  }
  return launchers;
}
