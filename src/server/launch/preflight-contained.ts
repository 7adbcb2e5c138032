/** What the machine shows of itself, as a launch by a client meets it. Pure: a container has a /dev/shm of its own, a job the node that Slurm chooses. */
import type { GpuLook, Resources } from '../../machine/machine.ts';
import { type ClientCommand, optionOf, readClientCommand } from '../../spec/client-command.ts';

export interface Shown {
  readonly gpus: GpuLook;
  readonly resources: Resources;
}

export function asLaunchMeets(command: string, shown: Shown): Shown {
  const client = readClientCommand(command);
  if (client === undefined || client.kind === 'unreadable') return shown;
  const { gpus, resources } = shown;
  if (client.kind === 'container') {
    const sharedMemoryFreeBytes = sharedMemoryOf(client, resources.sharedMemoryFreeBytes);
    return { gpus, resources: { ...resources, sharedMemoryFreeBytes } };
  }
  // Not looked at is unknown, and never ok.
  const unknown = { memoryAvailableBytes: undefined, sharedMemoryFreeBytes: undefined, diskFreeBytes: [] };
  return { gpus: { kind: 'absent' }, resources: unknown };
}

/** Ports that the launch needs of the machine that is looked at: a job has those of its node. */
export function portsMet<Port>(command: string, ports: readonly Port[]): readonly Port[] {
  return readClientCommand(command)?.kind === 'step' ? [] : ports;
}

/** What docker and podman give where nobody says it. */
const USUAL_SHM = 64 * 2 ** 20;
const UNITS: Readonly<Record<string, number>> = { b: 1, k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40 };

function sharedMemoryOf(client: ClientCommand, free: number | undefined): number | undefined {
  if (optionOf(client, 'ipc')?.value === 'host') return free;
  if (optionOf(client, 'ipc') !== undefined) return undefined;
  const written = optionOf(client, 'shm-size')?.value;
  if (written === undefined) return USUAL_SHM;
  const [, count, unit = 'b'] = /^(\d+(?:\.\d+)?)\s*([bkmgt]?)b?$/i.exec(written) ?? [];
  return count === undefined ? undefined : Number(count) * (UNITS[unit.toLowerCase()] ?? 1);
}
