/**
 * What nvidia-smi is asked and what its csv says. Pure. `[N/A]`, `[Not Found]`, `[Insufficient Permissions]` and
 * `[Unknown Error]` stand where a number should and are values. A name may hold commas, so it is asked last.
 */
import type { GpuLook, GpuReading } from './machine.ts';

export const QUERY_GPUS = [
  '--query-gpu=index,uuid,memory.used,memory.total,utilization.gpu,name',
  '--format=csv,noheader,nounits',
] as const;

export const QUERY_COMPUTE_APPS = [
  '--query-compute-apps=gpu_uuid,pid,used_memory,process_name',
  '--format=csv,noheader,nounits',
] as const;

/** A driver that hangs on one card of eight holds nvidia-smi up for many seconds. */
export const NVIDIA_SMI_MS = 60_000;

export function parseGpus(csv: string): GpuLook {
  const gpus: GpuReading[] = [];
  for (const [index, uuid = '', used, total, utilisation, name = ''] of rows(csv, 6)) {
    const reading = { index: numberOf(index), usedMiB: numberOf(used), totalMiB: numberOf(total) };
    const { usedMiB, totalMiB } = reading;
    if (reading.index === undefined) return { kind: 'failed', because: `nvidia-smi said: ${index ?? ''}` };
    if (usedMiB === undefined || totalMiB === undefined)
      return { kind: 'failed', because: `nvidia-smi does not tell the memory of GPU ${reading.index}: ${used ?? ''}` };
    gpus.push({ index: reading.index, uuid, name, usedMiB, totalMiB, utilisationPercent: numberOf(utilisation) });
  }
  return gpus.length === 0 ? { kind: 'failed', because: 'nvidia-smi names no GPU' } : { kind: 'read', gpus };
}

export interface ComputeApp {
  readonly gpuUuid: string;
  readonly pid: number;
  /** undefined: the driver does not tell. */
  readonly usedMiB: number | undefined;
  /** '' where nvidia-smi found no process of this pid from where it runs. */
  readonly name: string;
}

/** `isWhole`: every line told a pid. */
export function parseComputeApps(csv: string): { readonly apps: readonly ComputeApp[]; readonly isWhole: boolean } {
  const apps: ComputeApp[] = [];
  let isWhole = true;
  for (const [gpuUuid = '', pid, used, name = ''] of rows(csv, 4)) {
    const found = numberOf(pid);
    if (found === undefined) isWhole = false;
    else apps.push({ gpuUuid, pid: found, usedMiB: numberOf(used), name: /^\[.*\]$/.test(name) ? '' : name });
  }
  return { apps, isWhole };
}

function* rows(csv: string, fields: number): Generator<string[]> {
  for (const line of csv.split(/\r?\n/)) {
    if (line.trim() === '') continue;
    const words = line.split(',').map((word) => word.trim());
    yield [...words.slice(0, fields - 1), words.slice(fields - 1).join(', ')];
  }
}

function numberOf(word: string | undefined): number | undefined {
  return word !== undefined && /^\d+(\.\d+)?$/.test(word) ? Number(word) : undefined;
}
