/** Who belongs to a launch, and who never does. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { findFamily, type ProcessRow } from './family.ts';

const row = (pid: number, more: Partial<ProcessRow> = {}): ProcessRow => ({
  ...{ pid, parent: 1, session: pid, startTicks: pid, carriesMarker: false, hasEnded: false },
  ...more,
});
const pids = (rows: readonly ProcessRow[], main?: number) => findFamily(rows, main).map(({ pid }) => pid);

test('by marker, by session, by descent', () => {
  const shell = row(10, { carriesMarker: true });
  const main = row(11, { parent: 10, session: 10 });
  expect(pids([shell, main, row(12, { session: 10 }), row(13, { parent: 11 }), row(14)], 11)).toEqual([10, 11, 12, 13]);
});

test('a session whose leader lives and does not carry the marker is somebody’s terminal', () => {
  const terminal = row(5);
  const carrier = row(10, { session: 5, carriesMarker: true });
  expect(pids([terminal, carrier, row(11, { session: 5 })])).toEqual([10]);
  expect(pids([{ ...terminal, hasEnded: true }, carrier, row(11, { session: 5 })])).toEqual([5, 10, 11]);
});

test('session 0 is none: all that came into a container or sandbox from outside show it', () => {
  const init = row(1, { parent: 0, session: 0 });
  const carrier = row(10, { session: 0, carriesMarker: true });
  const stranger = row(11, { session: 0 });
  expect(pids([init, carrier, stranger, row(12, { session: 0, parent: 10 })])).toEqual([10, 12]);
  expect(pids([init, row(10, { session: 0 }), stranger], 10)).toEqual([10]);
});

test('nobody descends from a younger process: its pid was given anew', () => {
  expect(pids([row(10, { startTicks: 100 }), row(11, { parent: 10, startTicks: 50 })], 10)).toEqual([10]);
});

test('without marker and main there is no family; more processes never take one out of it', () => {
  const any = fc.record({
    pid: fc.integer({ min: 2, max: 30 }),
    parent: fc.integer({ min: 1, max: 30 }),
    session: fc.integer({ min: 0, max: 30 }),
    startTicks: fc.integer({ min: 0, max: 100 }),
    carriesMarker: fc.constant(false),
    hasEnded: fc.boolean(),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(any, { selector: ({ pid }) => pid, maxLength: 25 }),
      fc.integer({ min: 2, max: 30 }),
      (rows, main) => {
        expect(findFamily(rows, undefined)).toEqual([]);
        const there = rows.some(({ pid }) => pid === main);
        const family = findFamily(rows, there ? main : undefined);
        expect(family.some(({ pid }) => pid === main)).toBe(there);
        for (const member of family) {
          const isExplained =
            member.pid === main ||
            family.some(
              (other) =>
                other !== member && (other.pid === member.parent || (other.session === member.session && member.session !== 0)),
            );
          expect(isExplained).toBe(true);
        }
      },
    ),
  );
});
