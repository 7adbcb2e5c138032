/** What this machine has left: memory, shared memory, disk. What is not known is undefined. */
import { statfs } from 'node:fs/promises';
import { freemem } from 'node:os';
import { nearestExisting } from '../../host/find-mount.ts';
import { memoryFolders, memoryLeft } from '../cgroup.ts';
import type { Resources } from '../machine.ts';
import { readProc } from './proc.ts';

export async function readResources(paths: readonly string[]): Promise<Resources> {
  return {
    memoryAvailableBytes: await readMemory(),
    sharedMemoryFreeBytes: await freeBytes('/dev/shm'),
    // A folder that is not there yet is made where the nearest one above it is.
    diskFreeBytes: await Promise.all(paths.map(async (path) => freeBytes(await nearestExisting(path)))),
  };
}

async function readMemory(): Promise<number | undefined> {
  const available = /^MemAvailable:\s+(\d+) kB$/m.exec((await readProc('/proc/meminfo')) ?? '')?.[1];
  const whole = available === undefined ? freemem() : Number(available) * 1024;
  const folders = memoryFolders((await readProc('/proc/self/cgroup')) ?? '');
  const left = await Promise.all(
    folders.map(async ({ version, folder }) => {
      const names = version === 2 ? ['memory.max', 'memory.current'] : ['memory.limit_in_bytes', 'memory.usage_in_bytes'];
      const [limit = '', usage = '', stat = ''] = await Promise.all(
        [...names, 'memory.stat'].map(async (name) => (await readProc(`${folder}/${name}`)) ?? ''),
      );
      return memoryLeft(limit, usage, stat);
    }),
  );
  return Math.min(whole, ...left.filter((bytes) => bytes !== undefined));
}

async function freeBytes(path: string): Promise<number | undefined> {
  const found = await statfs(path).catch(() => undefined);
  return found === undefined ? undefined : found.bavail * found.bsize;
}
