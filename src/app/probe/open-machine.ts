/** The machine that is probed. A connection is waited for by whoever asks, no longer than a probe lasts. */
import { localMachine } from '../../machine/local/local-machine.ts';
import type { Machine } from '../../machine/machine.ts';
import type { MachineSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { machineAt } from '../servers/machine-of.ts';

export function openMachine(spec: MachineSpec | undefined, context: OperationContext): Machine {
  return spec === undefined ? localMachine(context.host) : machineAt(spec.ssh, context);
}
