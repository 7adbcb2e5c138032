/**
 * The machine of a rehearsal: this one, with other GPUs and without its limits. Processes, ports, signals and logs are real; the
 * cards are lookalikes that only this operation sees, and host memory, /dev/shm and disk are as large as any launch asks for.
 */
import type { Host } from '../../host/host.ts';
import { localMachine } from '../../machine/local/local-machine.ts';
import type { Machine } from '../../machine/machine.ts';

export interface RehearsalRoom {
  /** Laid over the environment: a PATH with the lookalike of nvidia-smi, and where its cards are. */
  readonly env: Readonly<Record<string, string>>;
  readonly hostMemoryGiB: number;
}

/** Above what any launch asks of /dev/shm and of a disk. */
const PLENTY_BYTES = 2 ** 50;

export function rehearsalMachine(host: Host, { env, hostMemoryGiB }: RehearsalRoom): Machine {
  const machine = localMachine({ ...host, env: { ...host.env, ...env } });
  return {
    ...machine,
    resources: (paths) =>
      Promise.resolve({
        memoryAvailableBytes: hostMemoryGiB * 2 ** 30,
        sharedMemoryFreeBytes: PLENTY_BYTES,
        diskFreeBytes: paths.map(() => PLENTY_BYTES),
      }),
    // Whoever uses a real card of this machine holds nothing of these.
    async holders() {
      const { holders } = await machine.holders();
      return { holders: holders.filter(({ by }) => by === 'compute-apps'), unknown: [] };
    },
  };
}
