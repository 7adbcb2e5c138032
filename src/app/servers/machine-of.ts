/**
 * The machine that a server of the run file is on. A file of its own: whoever only looks loads nothing else.
 * A process has one connection to each machine, whoever asks for it (`opened-machines.ts`), until the operation ends.
 */
import { localMachine } from '../../machine/local/local-machine.ts';
import type { Machine } from '../../machine/machine.ts';
import { openSshMachine } from '../../machine/ssh/open-ssh-machine.ts';
import type { MachineSpec, ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { openOnce } from './opened-machines.ts';

/** For whoever asks once, with a person waiting: long enough for a slow line and a second try. */
export const PATIENCE_MS = 30_000;

/** `patienceMs`: how long it may be out of reach before a question throws `machine.unreachable`. */
export function machineOf(server: ServerSpec, context: OperationContext, patienceMs = PATIENCE_MS): Machine {
  const { lab } = context;
  if (lab !== undefined) return lab.machineOf(server);
  return machineOn(server.machine, context, patienceMs);
}

/** undefined: this machine. */
export function machineOn(spec: MachineSpec | undefined, context: OperationContext, patienceMs = PATIENCE_MS): Machine {
  return spec === undefined ? localMachine(context.host) : machineAt(spec.ssh, context, patienceMs);
}

/** The host of which the server's machine is a container; undefined: the run file names none. */
export function outerMachineOf(server: ServerSpec, context: OperationContext, patienceMs = PATIENCE_MS): Machine | undefined {
  const outer = server.machine?.outer ?? '';
  return outer === '' || context.lab !== undefined ? undefined : machineAt(outer, context, patienceMs);
}

/** `target`: what ssh is given. Who is asked to stop waits for nothing any more. */
function machineAt(target: string, { host, drain }: OperationContext, patienceMs = PATIENCE_MS): Machine {
  return openOnce(host, `${target} ${patienceMs}`, () => openSshMachine({ target, host, patienceMs, signal: drain }));
}
