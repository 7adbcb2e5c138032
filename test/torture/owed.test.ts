import { expect, test } from 'vitest';
import { allKinds, countOf, nameOf, owedFor, PHASES, POINTS, renderTable, sortComplaints, stillOwed } from './owed.ts';

test('a thousand kills are at least two hundred in each phase, on one endpoint and on two', () => {
  const owed = owedFor(1_000);
  expect(countOf(owed, () => true)).toBeGreaterThanOrEqual(1_000);
  for (const phase of PHASES) {
    expect(countOf(owed, (kind) => kind.phase === phase)).toBeGreaterThanOrEqual(200);
    for (const endpoints of [1, 2])
      expect(countOf(owed, (kind) => kind.phase === phase && kind.endpoints === endpoints)).toBeGreaterThanOrEqual(100);
  }
});

test('every phase but that of requests in flight has a point at which a worker can die', () => {
  expect(PHASES.filter((phase) => POINTS[phase].length === 0)).toEqual(['in flight']);
});

test('what is made is no longer owed', () => {
  const owed = owedFor(100);
  expect(stillOwed(owed, {}, 1).length).toBe(allKinds().length / 2);
  const first = stillOwed(owed, {}, 1)[0];
  if (first === undefined) throw new Error('nothing is owed');
  const made = { [nameOf(first)]: owed[nameOf(first)] ?? 0 };
  expect(stillOwed(owed, made, 1)).not.toContainEqual(first);
  expect(stillOwed(owed, owed, 1)).toEqual([]);
});

test('complaints are counted as lost, doubled or other', () => {
  const complaints = [
    'A: 7 of 80 prompts have no record',
    'record A/x was shown as done and is gone',
    'prompt A/y has two live records',
    'A/00000.jsonl: bytes that were committed have changed',
  ];
  expect(sortComplaints(complaints)).toEqual({ lost: 8, doubled: 1, other: 1 });
});

test('the table has a row a phase and sums that agree', () => {
  const table = renderTable({ 'seal / both / 2': 3, 'in flight / engine / 1': 4 });
  expect(table).toContain('| seal |  |  |  |  |  | 3 | 3 |');
  expect(table).toContain('| **all** |  | 4 |  |  |  | 3 | 7 |');
});
