/** Lines as nvidia-smi prints them, and whatever else: values, never a crash. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseComputeApps, parseGpus } from './nvidia-smi.ts';

test('cards, with a name that holds commas and a utilisation that is not told', () => {
  const csv = [
    '0, GPU-aa, 512, 97887, 0, NVIDIA RTX PRO 6000 Blackwell Server Edition',
    '1, GPU-bb, 96000, 97887, [N/A], Some, odd card',
    '',
  ];
  expect(parseGpus(csv.join('\n'))).toEqual({
    kind: 'read',
    gpus: [
      {
        index: 0,
        uuid: 'GPU-aa',
        usedMiB: 512,
        totalMiB: 97887,
        utilisationPercent: 0,
        name: 'NVIDIA RTX PRO 6000 Blackwell Server Edition',
      },
      { index: 1, uuid: 'GPU-bb', usedMiB: 96000, totalMiB: 97887, utilisationPercent: undefined, name: 'Some, odd card' },
    ],
  });
});

test.each([
  ['No devices were found\n', 'No devices were found'],
  ['', 'no GPU'],
  ['0, GPU-aa, [N/A], [N/A], 0, NVIDIA GB10\n', 'memory of GPU 0: [N/A]'],
  ['0, GPU-aa, [Insufficient Permissions], 97887, 0, X\n', '[Insufficient Permissions]'],
  ['Unable to determine the device handle for GPU 0000:01:00.0: Unknown Error\n', 'Unable to determine'],
])('no cards: %j', (csv, because) => {
  expect(parseGpus(csv)).toMatchObject({ kind: 'failed', because: expect.stringContaining(because) });
});

test('compute apps: unknown memory, no name, no pid', () => {
  const csv = [
    'GPU-aa, 4242, 70000, sglang::scheduler_TP0',
    'GPU-aa, 77, [N/A], python3, with a comma',
    'GPU-bb, 4243, 10240, [Not Found]',
    'GPU-bb, [Insufficient Permissions], [Insufficient Permissions], [Insufficient Permissions]',
  ];
  expect(parseComputeApps(csv.join('\n'))).toEqual({
    isWhole: false,
    apps: [
      { gpuUuid: 'GPU-aa', pid: 4242, usedMiB: 70000, name: 'sglang::scheduler_TP0' },
      { gpuUuid: 'GPU-aa', pid: 77, usedMiB: undefined, name: 'python3, with a comma' },
      { gpuUuid: 'GPU-bb', pid: 4243, usedMiB: 10240, name: '' },
    ],
  });
  expect(parseComputeApps('\n')).toEqual({ isWhole: true, apps: [] });
});

test('any text is read', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      parseGpus(text);
      parseComputeApps(text);
    }),
  );
});
