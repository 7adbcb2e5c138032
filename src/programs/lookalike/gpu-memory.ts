/**
 * What the lookalike engine takes of the GPUs that `AERIE_LOOKALIKE_GPUS` names: seen by the lookalike of nvidia-smi as the
 * memory of this process, and free again when this process has ended, however it ended. Format: `gpu-state.ts`.
 */
import { GPUS_VARIABLE, type Hold, holderKeyOf, readGpus, readHolds, removeHold, writeHold } from './gpu-state.ts';

export interface GpuMemory {
  /** How many cards there are. */
  readonly count: number;
  /** What the card of this index has, MiB. */
  total(index: number): number;
  /** What nobody holds of it now, this process included, MiB. Never below 0. */
  free(index: number): number;
  /** From now on this process holds so much of each card, MiB by index; replaces what it held. */
  hold(mibByGpu: readonly number[], keepsAfterDeath?: Hold['keepsAfterDeath']): void;
  release(): void;
}

/** undefined: no such GPUs in this environment. Throws where the folder is not as described. */
export function openGpuMemory(env: Readonly<Record<string, string | undefined>>): GpuMemory | undefined {
  const folder = env[GPUS_VARIABLE];
  if (folder === undefined || folder === '') return undefined;
  const gpus = readGpus(folder);
  const self = holderKeyOf(process.pid);
  const cardOf = (index: number) => {
    const gpu = gpus[index];
    if (gpu === undefined) throw new Error(`there is no GPU ${index}: ${folder}/gpus.json names ${gpus.length}`);
    return gpu;
  };
  return {
    count: gpus.length,
    total: (index) => cardOf(index).totalMiB,
    free(index) {
      const { totalMiB, baseMiB } = cardOf(index);
      const heldMiB = readHolds(folder).reduce((sum, hold) => sum + (hold.gpus[String(index)] ?? 0), 0);
      return Math.max(0, totalMiB - baseMiB - heldMiB);
    },
    hold(mibByGpu, keepsAfterDeath) {
      for (const index of mibByGpu.keys()) cardOf(index);
      const held = mibByGpu.map((mib, index) => [String(index), mib] as const).filter(([, mib]) => mib > 0);
      writeHold(folder, self, {
        gpus: Object.fromEntries(held),
        name: process.argv0,
        ...(keepsAfterDeath === undefined ? {} : { keepsAfterDeath }),
      });
    },
    release: () => removeHold(folder, self),
  };
}
