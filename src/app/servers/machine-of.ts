/**
 * The machine that a server of the run file is on. A file of its own: whoever only looks loads nothing else.
 * A process has one connection to each machine, whoever asks for it; `closeMachines` ends them with the operation.
 */
import type { Host } from '../../host/host.ts';
import { localMachine } from '../../machine/local/local-machine.ts';
import type { Machine } from '../../machine/machine.ts';
import { openSshMachine } from '../../machine/ssh/open-ssh-machine.ts';
import type { ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';

/** For whoever asks once, with a person waiting: long enough for a slow line and a second try. */
const PATIENCE_MS = 30_000;

/** By host, then by target and patience. */
const opened = new WeakMap<Host, Map<string, Machine>>();

/** `patienceMs`: how long it may be out of reach before a question throws `machine.unreachable`. */
export function machineOf(server: ServerSpec, context: OperationContext, patienceMs = PATIENCE_MS): Machine {
  const { host, lab } = context;
  if (lab !== undefined) return lab.machineOf(server);
  return server.machine === undefined ? localMachine(host) : machineAt(server.machine.ssh, context, patienceMs);
}

/** The host of which the server's machine is a container; undefined: the run file names none. */
export function outerMachineOf(server: ServerSpec, context: OperationContext, patienceMs = PATIENCE_MS): Machine | undefined {
  const outer = server.machine?.outer ?? '';
  return outer === '' || context.lab !== undefined ? undefined : machineAt(outer, context, patienceMs);
}

/** `target`: what ssh is given. Who is asked to stop waits for nothing any more. */
export function machineAt(target: string, { host, drain }: OperationContext, patienceMs = PATIENCE_MS): Machine {
  const machines = opened.get(host) ?? new Map<string, Machine>();
  opened.set(host, machines);
  const key = `${target} ${patienceMs}`;
  const machine = machines.get(key) ?? openSshMachine({ target, host, patienceMs, signal: drain });
  machines.set(key, machine);
  return machine;
}

/** What was started there goes on. */
export async function closeMachines(host: Host): Promise<void> {
  const machines = [...(opened.get(host)?.values() ?? [])];
  opened.delete(host);
  await Promise.all(machines.map((machine) => machine.close()));
}
