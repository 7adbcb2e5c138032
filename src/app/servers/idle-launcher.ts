/** The launcher of a server for whoever generates nothing: it ends a launch, or changes what the next one will be. */
import type { Happening } from '../../base/events.ts';
import type { EngineLauncher } from '../../server/launch/engine-launcher.ts';
import type { PolicyRule, RunSpec, ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { obtainBasis } from './launch-basis.ts';
import { openLauncher } from './launched-server.ts';
import { machineOf } from './machine-of.ts';

export interface IdleLauncherOptions {
  readonly run: RunSpec;
  readonly server: ServerSpec;
  readonly context: OperationContext;
  readonly emit: (happening: Happening) => void;
  readonly policy: () => readonly PolicyRule[];
}

export async function openIdleLauncher({ run, server, context, emit, policy }: IdleLauncherOptions): Promise<EngineLauncher> {
  const machine = machineOf(server, context);
  return openLauncher({
    ...{ run, server, machine, context, emit, policy, signal: context.abort },
    basis: await obtainBasis(run, server, machine, { ...context, onNote: () => undefined }),
    isIdle: true,
    asked: () => ({ inFlight: 0, answered: 0 }),
  });
}
