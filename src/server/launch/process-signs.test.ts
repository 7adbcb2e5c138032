import { expect, test } from 'vitest';
import { memberOf } from '../../machine/contained/inside.ts';
import type { FamilyMember, ProcessLook } from '../../machine/machine.ts';
import { signsOf } from './process-signs.ts';

const process = (pid: number): FamilyMember => ({
  ...{ pid, startTicks: 5, bootId: 'boot', command: `p${pid}`, parent: 1, presence: 'running', isUninterruptible: false },
});
const container = memberOf({
  ...{ kind: 'container', id: 'a'.repeat(64), name: 'container x', state: 'running', pid: 7, startTicks: undefined },
  ...{ exitStatus: undefined, isOutOfMemory: false, node: '', says: '' },
});
const look = (family: readonly FamilyMember[]): ProcessLook => ({
  ...{ main: 'running', exitStatus: undefined, family, residentBytes: 1, readBytes: 1, cpuTicks: 1, compilers: 0 },
});

test('a front end whose workers are gone has none; of a container whose client is gone nobody knows how many there are', () => {
  expect(signsOf(look([process(1), process(2)]), undefined).children).toBe(1);
  expect(signsOf(look([process(1)]), undefined).children).toBe(0);
  expect(signsOf(look([process(1), container]), undefined).children).toBeUndefined();
  expect(signsOf(look([container]), undefined).children).toBeUndefined();
});
