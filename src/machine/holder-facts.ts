/**
 * Who holds memory of the GPUs, from what was seen: nvidia-smi's list, processes with a device of it open, zombies. Pure.
 * nvidia-smi speaks of the host's pids, whatever pid namespace asks, so a pid of its list is somebody here only where what is
 * here can be the holder.
 */
import type { Holder, ProcessIdentity } from './machine.ts';
import type { ComputeApp } from './nvidia-smi.ts';

/** A process of this pid namespace, as far as it bears on GPUs. */
export interface SeenProcess extends ProcessIdentity {
  readonly name: string;
  readonly user: string;
  readonly container: string;
  readonly isZombie: boolean;
  /** Its parent, where it is a zombie. */
  readonly parent: { readonly pid: number; readonly command: string } | undefined;
  /** Minor numbers of /dev/nvidiaN that it, or a thread of it, has open; undefined = may not be seen. */
  readonly openMinors: readonly number[] | undefined;
  /** It has any device of the driver open; undefined = may not be seen. */
  readonly usesDriver: boolean | undefined;
}

export interface SeenGpus {
  readonly apps: readonly ComputeApp[];
  readonly processes: readonly SeenProcess[];
  /** There are device files of the driver here: else nobody can have one open, and it says nothing. */
  readonly hasDevices: boolean;
  /** UUID of the card by minor number, as far as the driver tells. */
  readonly uuidByMinor: ReadonlyMap<number, string>;
}

export function findHolders({ apps, processes, hasDevices, uuidByMinor }: SeenGpus): Holder[] {
  const byPid = new Map(processes.map((process) => [process.pid, process]));
  const listed = apps.map((app): Holder => {
    const process = byPid.get(app.pid);
    const isHere = process !== undefined && canBeHolder(app, process, hasDevices);
    return isHere ? asHolder(process, app.usedMiB, app.gpuUuid, 'compute-apps') : asStranger(app);
  });
  const known = new Set(listed.flatMap(({ identity }) => (identity === undefined ? [] : [identity.pid])));
  const others = processes
    .filter(({ pid, openMinors }) => !known.has(pid) && (openMinors?.length ?? 0) > 0)
    .flatMap((process) =>
      (process.openMinors ?? []).map((minor) => asHolder(process, undefined, uuidByMinor.get(minor) ?? '', 'open-files')),
    );
  return [...listed, ...others];
}

/** A zombie has closed its files, so nothing can be said against it. */
function canBeHolder(app: ComputeApp, { isZombie, usesDriver }: SeenProcess, hasDevices: boolean): boolean {
  if (isZombie) return true;
  return app.name !== '' && !(hasDevices && usesDriver === false);
}

function asHolder(process: SeenProcess, usedMiB: number | undefined, gpuUuid: string, by: Holder['by']): Holder {
  const { pid, startTicks, bootId, command, name, user, container, isZombie, parent } = process;
  const identity = { pid, startTicks, bootId, command };
  return { pid, identity, name, user, usedMiB, gpuUuid, by: isZombie ? 'zombie' : by, parent, container };
}

function asStranger({ pid, name, usedMiB, gpuUuid }: ComputeApp): Holder {
  return { pid, identity: undefined, name, user: '', usedMiB, gpuUuid, by: 'compute-apps', parent: undefined, container: '' };
}
