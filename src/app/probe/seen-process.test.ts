/** When nobody is the server that wrote a log. */
import { expect, test } from 'vitest';
import { isNobody } from './seen-process.ts';

type Seen = Parameters<typeof isNobody>[0];

const REFUSED: Seen = { seesAll: true, health: 'refused', isPortTold: true, wasReady: true };

test('where every process can be seen, whoever is not there is gone; one that answers, or may yet, is somebody', () => {
  expect(isNobody(REFUSED)).toBe(true);
  expect(isNobody({ ...REFUSED, health: undefined, isPortTold: false, wasReady: false })).toBe(true);
  expect(isNobody({ ...REFUSED, health: 'http' })).toBe(false);
  expect(isNobody({ ...REFUSED, health: 'timeout' })).toBe(false);
});

test('inside a container the closed port of a server that had opened it says it too; a load out of sight has none open yet', () => {
  const inside = { ...REFUSED, seesAll: false };
  expect(isNobody(inside)).toBe(true);
  expect(isNobody({ ...inside, wasReady: false })).toBe(false);
  expect(isNobody({ ...inside, isPortTold: false })).toBe(false);
  expect(isNobody({ ...inside, health: undefined })).toBe(false);
  expect(isNobody({ ...inside, health: 'http' })).toBe(false);
});
