/** What a watch takes from a look at a process and its family, and from the GPUs of its machine. */
import type { ProcessSigns } from '../../diagnosis/live/look.ts';
import { insideOf } from '../../machine/contained/inside.ts';
import type { Machine, ProcessLook } from '../../machine/machine.ts';

export function signsOf(look: ProcessLook, gpuUsedMiB: number | undefined): ProcessSigns {
  const { main, exitStatus, residentBytes, readBytes, compilers, family, end } = look;
  // A client and its container are two, whatever lives in it; a container whose client is gone is one, and no server without workers.
  const isContained = family.some((member) => insideOf(member) !== undefined);
  const running = family.filter(({ presence }) => presence === 'running').length;
  const children = isContained ? undefined : Math.max(0, running - 1);
  const signs = { exitStatus, residentBytes, readBytes, gpuUsedMiB, compilers, children };
  return { presence: main, ...signs, ...(end === undefined ? {} : { end }) };
}

/** nvidia-smi takes a second of a CPU on a machine of eight cards. */
const GPU_EVERY_LOOKS = 5;

/** Memory of all GPUs of a machine together, read at some of the looks at a start. */
export class GpuSigns {
  usedMiB: number | undefined;
  totalMiB: number | undefined;
  readonly #machine: Pick<Machine, 'gpus'>;
  #looks = 0;

  constructor(machine: Pick<Machine, 'gpus'>) {
    this.#machine = machine;
  }

  async look(): Promise<void> {
    this.#looks += 1;
    if (this.#looks % GPU_EVERY_LOOKS !== 1) return;
    const look = await this.#machine.gpus();
    this.totalMiB = look.kind === 'read' ? look.gpus.reduce((sum, { totalMiB }) => sum + totalMiB, 0) : undefined;
    this.usedMiB = look.kind === 'read' ? look.gpus.reduce((sum, { usedMiB }) => sum + usedMiB, 0) : undefined;
  }
}
