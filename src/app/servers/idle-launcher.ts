/** The launcher of a server for whoever generates nothing: it ends a launch, or changes what the next one will be. */
import type { Happening } from '../../base/events.ts';
import type { EngineLauncher } from '../../server/launch/engine-launcher.ts';
import type { PolicyRule, RunSpec, ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { obtainBasis } from './launch-basis.ts';
import { openLauncher } from './launched-server.ts';
import { machineOf, PATIENCE_MS } from './machine-of.ts';
import { sayWhenNotReached } from './say-when-not-reached.ts';

export interface IdleLauncherOptions {
  readonly run: RunSpec;
  readonly server: ServerSpec;
  readonly context: OperationContext;
  readonly emit: (happening: Happening) => void;
  readonly policy: () => readonly PolicyRule[];
  readonly isUnrecorded?: boolean;
}

export async function openIdleLauncher(options: IdleLauncherOptions): Promise<EngineLauncher> {
  const { run, server, context } = options;
  const machine = machineOf(server, context);
  const unhear = sayWhenNotReached(machine, { patienceMs: PATIENCE_MS, soFar: '' }, context);
  const basis = await obtainBasis(run, server, machine, { ...context, onNote: () => undefined }).finally(unhear);
  return openLauncher({
    ...{ ...options, machine, signal: context.abort },
    basis,
    isIdle: true,
    asked: () => ({ inFlight: 0, answered: 0 }),
  });
}
