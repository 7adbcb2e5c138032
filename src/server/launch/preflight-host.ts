/** The host of a launch: memory for the hierarchical cache, /dev/shm, disk for a download. Pure. */
import { formatBytes } from '../../base/units.ts';
import { gpusNeeded } from './preflight-gpus.ts';
import type { PreflightCheck, PreflightInput } from './preflight-input.ts';

/** SGLang leaves this of the host's memory alone, decimal (`memory_pool_host`). */
const RESERVE_BYTES = 10e9;
/** Below this NCCL of several ranks may not find room; docker gives 64 MB. */
const LITTLE_SHM = 2 ** 30;
/** Caches of compiled kernels and logs grow as well. */
const SPARE_DISK = 10 * 2 ** 30;

/** Each rank checks for itself before any has taken its share, so the sum can end the host; that is why it is asked here. */
export function checkHostMemory({ plan, resources }: PreflightInput): PreflightCheck {
  const name = 'host memory';
  const free = resources.memoryAvailableBytes;
  if (plan === undefined || free === undefined) {
    const says =
      free === undefined ? 'how much host memory is free is not known' : `${formatBytes(free)} of host memory are free`;
    return {
      name,
      verdict: 'unknown',
      says: plan === undefined ? `${says}; what the launch takes is not known` : says,
      remedy: '',
    };
  }
  const { GiBPerRank, GiBTotal } = plan.prediction.hostCache;
  const cache = GiBTotal * 2 ** 30;
  const ranks = GiBPerRank === 0 ? 0 : Math.round(GiBTotal / GiBPerRank);
  const takes = `the hierarchical cache takes ${GiBPerRank.toFixed(1)} GiB for each of ${ranks} ranks, ${formatBytes(cache)} in all`;
  const has = `${formatBytes(free)} are free`;
  if (cache > 0 && cache + RESERVE_BYTES > free) {
    const most = Math.floor(Math.max(0, free - RESERVE_BYTES) / ranks / 1e9);
    const remedy = `Lower hicache-size to ${most} (decimal GB for each rank) or less, or leave the hierarchical cache out.`;
    return { name, verdict: 'refused', says: `${takes}, and ${has}`, remedy };
  }
  const model = plan.shape.weights.reduce((sum, part) => sum + part.bytes, 0);
  const room = free - cache - (cache > 0 ? RESERVE_BYTES : 0);
  if (room < model) {
    const says = `${cache > 0 ? `${takes}, and ` : ''}${has}: the model's ${formatBytes(Math.round(model))} do not stay in the page cache`;
    return {
      name,
      verdict: 'warning',
      says,
      remedy: 'Every start reads the model from disk again, which takes longer; the server works all the same.',
    };
  }
  return { name, verdict: 'ok', says: cache > 0 ? `${takes}, and ${has}` : `${has}`, remedy: '' };
}

export function checkSharedMemory(input: PreflightInput): PreflightCheck {
  const name = 'shared memory';
  const free = input.resources.sharedMemoryFreeBytes;
  if (free === undefined) return { name, verdict: 'unknown', says: 'how much of /dev/shm is free is not known', remedy: '' };
  const says = `${formatBytes(free)} of /dev/shm are free`;
  if (free >= LITTLE_SHM || gpusNeeded(input) === 1) return { name, verdict: 'ok', says, remedy: '' };
  const remedy =
    'Ranks speak through it: start the container with --shm-size 32g or --ipc=host, or delete what is left there of ended servers (nccl-*, psm_*).';
  return { name, verdict: 'warning', says: `${says}, which is little for NCCL`, remedy };
}

export function checkDisk({ downloadBytes, diskFreeBytes }: PreflightInput): PreflightCheck {
  const name = 'disk';
  if (downloadBytes === 0) return { name, verdict: 'ok', says: 'nothing is to be fetched', remedy: '' };
  if (downloadBytes === undefined || diskFreeBytes === undefined) {
    const says =
      downloadBytes === undefined
        ? 'whether the model is to be fetched is not known'
        : `${formatBytes(downloadBytes)} are to be fetched, and how much of the disk is free is not known`;
    return { name, verdict: 'unknown', says, remedy: '' };
  }
  const says = `${formatBytes(downloadBytes)} are to be fetched, and ${formatBytes(diskFreeBytes)} are free`;
  const remedy = 'Free some, or set HF_HOME in env: to a larger disk.';
  if (downloadBytes > diskFreeBytes) return { name, verdict: 'refused', says, remedy };
  if (downloadBytes + SPARE_DISK > diskFreeBytes) return { name, verdict: 'warning', says, remedy };
  return { name, verdict: 'ok', says, remedy: '' };
}
