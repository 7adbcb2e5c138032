/** Machines that this process has opened, for whoever ends the process. Types alone are imported: no command loads ssh to say so. */
import type { Host } from '../../host/host.ts';
import type { Machine } from '../../machine/machine.ts';

/** By host, then by target and patience. */
const opened = new WeakMap<Host, Map<string, Machine>>();

/** One connection to each machine, whoever asks for it. */
export function openOnce(host: Host, key: string, open: () => Machine): Machine {
  const machines = opened.get(host) ?? new Map<string, Machine>();
  opened.set(host, machines);
  const machine = machines.get(key) ?? open();
  machines.set(key, machine);
  return machine;
}

/** What was started there goes on. */
export async function closeMachines(host: Host): Promise<void> {
  const machines = [...(opened.get(host)?.values() ?? [])];
  opened.delete(host);
  await Promise.all(machines.map((machine) => machine.close()));
}
