/** The machine that a server of the run file is launched on. A file of its own: whoever only looks loads nothing else. */
import { localMachine } from '../../machine/local/local-machine.ts';
import type { Machine } from '../../machine/machine.ts';
import type { ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';

export function machineOf(server: ServerSpec, { host, lab }: OperationContext, _patienceMs?: number): Machine {
  return lab === undefined ? localMachine(host) : lab.machineOf(server);
}
