/** The machine that is probed. It is waited for no longer than a probe lasts. */
import { AerieError } from '../../base/errors.ts';
import { localMachine } from '../../machine/local/local-machine.ts';
import type { Machine } from '../../machine/machine.ts';
import type { MachineSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';

export function openMachine(spec: MachineSpec | undefined, { host }: OperationContext): Machine {
  if (spec === undefined) return localMachine(host);
  throw new AerieError('machine.unreachable', `${spec.ssh} is reached over ssh, which this Aerie cannot do yet.`, {
    remedy: 'Run aerie probe on that machine.',
  });
}
