/** Whom a line of nvidia-smi means, where pids of the host and of this namespace are different people. */
import { expect, test } from 'vitest';
import { findHolders, type SeenProcess } from './holder-facts.ts';

function seen(pid: number, more: Partial<SeenProcess> = {}): SeenProcess {
  const identity = { pid, startTicks: pid * 10, bootId: 'boot', command: `program ${pid}` };
  return {
    ...identity,
    name: 'program',
    user: 'me',
    container: '',
    isZombie: false,
    parent: undefined,
    openMinors: [],
    usesDriver: false,
    ...more,
  };
}
const app = { gpuUuid: 'GPU-a', pid: 42, usedMiB: 10_240, name: 'program' };
const none = {
  apps: [],
  processes: [],
  hasDevices: true,
  uuidByMinor: new Map([
    [0, 'GPU-a'],
    [1, 'GPU-b'],
  ]),
};
const isHere = ({ identity }: { identity: unknown }) => identity !== undefined;

test('a listed pid that has the driver open is that process', () => {
  const [holder] = findHolders({ ...none, apps: [app], processes: [seen(42, { usesDriver: true, openMinors: [0, 1] })] });
  expect(holder).toMatchObject({
    pid: 42,
    usedMiB: 10_240,
    gpuUuid: 'GPU-a',
    by: 'compute-apps',
    identity: { command: 'program 42' },
  });
});

test('a listed pid that is nobody here, or somebody who cannot be the holder, is a stranger', () => {
  const processes = [seen(42, { usesDriver: false })];
  expect(findHolders({ ...none, apps: [app] }).map(isHere)).toEqual([false]);
  expect(findHolders({ ...none, apps: [app], processes }).map(isHere)).toEqual([false]);
  expect(findHolders({ ...none, apps: [{ ...app, name: '' }], processes, hasDevices: false }).map(isHere)).toEqual([false]);
  // Where that cannot be said, it is believed: without device files here, and where its open files may not be seen.
  expect(findHolders({ ...none, apps: [app], processes, hasDevices: false }).map(isHere)).toEqual([true]);
  expect(findHolders({ ...none, apps: [app], processes: [seen(42, { usesDriver: undefined })] }).map(isHere)).toEqual([true]);
});

test('a zombie that is listed has a parent', () => {
  const parent = { pid: 7, command: 'supervisor' };
  const processes = [seen(42, { isZombie: true, parent })];
  expect(findHolders({ ...none, apps: [app], processes })).toMatchObject([{ by: 'zombie', parent, usedMiB: 10_240 }]);
});

test('who has a card open and is not listed holds nobody knows how much; one who is listed is not told twice', () => {
  const processes = [
    seen(42, { usesDriver: true, openMinors: [0] }),
    seen(50, { usesDriver: true, openMinors: [0, 1] }),
    seen(51),
  ];
  const holders = findHolders({ ...none, apps: [app], processes });
  expect(holders.map(({ pid, by, gpuUuid, usedMiB }) => [pid, by, gpuUuid, usedMiB])).toEqual([
    [42, 'compute-apps', 'GPU-a', 10_240],
    [50, 'open-files', 'GPU-a', undefined],
    [50, 'open-files', 'GPU-b', undefined],
  ]);
});
