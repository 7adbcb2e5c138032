import { expect, test } from 'vitest';
import { asLaunchMeets } from './preflight-contained.ts';

const GIB = 2 ** 30;
const SHOWN = {
  gpus: { kind: 'failed', because: 'x' },
  resources: { memoryAvailableBytes: 9 * GIB, sharedMemoryFreeBytes: 8 * GIB, diskFreeBytes: [7 * GIB] },
} as const;
const shm = (command: string) => asLaunchMeets(command, SHOWN).resources.sharedMemoryFreeBytes;

test.each<[string, number | undefined]>([
  ['python3 -m x', 8 * GIB],
  ['docker run IMG x', GIB / 16],
  ['docker run --ipc=host IMG x', 8 * GIB],
  ['docker run --ipc container:a IMG x', undefined],
  ['docker run --shm-size 32g IMG x', 32 * GIB],
  ['docker run --shm-size=512MB IMG x', GIB / 2],
  ['docker run --shm-size=$SIZE IMG x', undefined],
  ['srun x', undefined],
])('%s has that /dev/shm', (command, bytes) => expect(shm(command)).toBe(bytes));

test('of a node that Slurm chooses nothing is known here, and of a container all else is the machine’s', () => {
  expect(asLaunchMeets('srun x', SHOWN)).toEqual({
    gpus: { kind: 'absent' },
    resources: { memoryAvailableBytes: undefined, sharedMemoryFreeBytes: undefined, diskFreeBytes: [] },
  });
  expect(asLaunchMeets('docker run IMG x', SHOWN)).toMatchObject({
    gpus: SHOWN.gpus,
    resources: { memoryAvailableBytes: 9 * GIB },
  });
});
