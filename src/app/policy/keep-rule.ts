/** A rule that was added is kept by the launches to come: their books get the change that keeps it. */
import type { Happening } from '../../base/events.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { PolicyRule, RunSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { policyInForce } from '../policy-in-force.ts';
import { isLaunched } from '../server/choose-servers.ts';
import { obtainBasis } from '../servers/launch-basis.ts';
import { machineOf, openLauncher } from '../servers/launched-server.ts';

export interface KeepingRule {
  readonly run: RunSpec;
  readonly ledger: Ledger;
  readonly context: OperationContext;
  readonly emit: (happening: Happening) => void;
}

/** For the holder of the run alone. A launch that no flag can make keep the rule is refused when it is next started. */
export async function keepRule(rule: PolicyRule, { run, ledger, context, emit }: KeepingRule): Promise<void> {
  for (const server of run.servers.filter(isLaunched)) {
    const machine = machineOf(server, context);
    const launcher = openLauncher({
      ...{ run, server, machine, context, emit, signal: context.abort },
      basis: await obtainBasis(run, server, machine, { ...context, onNote: () => undefined }),
      policy: () => policyInForce(run, ledger),
      asked: () => ({ inFlight: 0, answered: 0 }),
    });
    await launcher.keepRule(rule);
  }
}
