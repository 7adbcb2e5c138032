import { expect, it } from 'vitest';
import { AerieError } from '../base/errors.ts';
import { describeGpu, findGpu, GPUS, rankNames } from './gpus.ts';

it.each([
  ['NVIDIA RTX PRO 6000 Blackwell Server Edition', 'RTX PRO 6000'],
  ['rtx pro 6000', 'RTX PRO 6000'],
  ['RTX 6000 PRO', 'RTX PRO 6000'],
  ['NVIDIA H100 80GB HBM3', 'H100'],
  ['NVIDIA H200', 'H200'],
  ['H20-96GB', 'H20'],
  ['NVIDIA A100-SXM4-80GB', 'A100 80GB'],
  ['NVIDIA A100-SXM4-40GB', 'A100 40GB'],
  ['NVIDIA GeForce RTX 5090', 'RTX 5090'],
  ['RTX-3090-24GB', 'RTX 3090'],
  ['L4-24GB', 'L4'],
  ['V100-16GB', 'V100 16GB'],
  ['Tesla T4', 'T4'],
  ['8xH200', 'H200'],
  ['A10G-24GB', 'A10'],
  ['A100-80G', 'A100 80GB'],
  ['H20-141GB', 'H20-3e'],
  ['4090', 'RTX 4090'],
  ['AMD Instinct MI300X', 'MI300X'],
])('%s is %s', (name, gpu) => {
  expect(findGpu(name).name).toBe(gpu);
});

it('an unknown name lists the nearest', () => {
  expect(rankNames('RTX 5080')[0]).toBe('RTX 5090');
  try {
    findGpu('GH300');
  } catch (error) {
    expect(error).toBeInstanceOf(AerieError);
    expect(error).toMatchObject({ code: 'gpu.unknown', detail: { because: expect.stringContaining('GH200') as string } });
    return;
  }
  throw new Error('it was found');
});

it('each has a source for what it says, and no name twice', () => {
  expect(new Set(GPUS.map(({ name }) => name)).size).toBe(GPUS.length);
  for (const gpu of GPUS) expect(gpu.sources.every((source) => source.includes(':'))).toBe(true);
});

it('a card that is in no table is described by what its driver reports', () => {
  expect(describeGpu('my card', 48_000)).toMatchObject({
    name: 'my card',
    memoryMiB: 48_000,
    sources: ['memory of the GPU as given: 48000 MiB'],
  });
});
