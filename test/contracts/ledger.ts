/**
 * What every ledger must do, as tests over a factory. `src/ledger/sqlite/sqlite-ledger.test.ts` runs them on SQLite.
 * A ledger is opened at a path of a fresh folder; opening the same path again after `close` is a restart.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { EnrolBatch, FinishedTurn, Lease, Ledger, PartitionCounters } from '../../src/ledger/ledger.ts';
import { attempt, batch, commitOf, enrolled, launch, prompt, recordOf, turnOf } from './ledger-rows.ts';

export type OpenLedger = (path: string, options: { readonly clock: { now(): number } }) => Ledger;

export function describeLedger(name: string, openLedger: OpenLedger): void {
  describe(`${name} as a ledger`, () => {
    const clock = { now: () => 1_000 };
    let folder = '';
    let ledger: Ledger;
    const open = () => openLedger(join(folder, 'ledger.sqlite'), { clock });
    const reopen = () => {
      ledger.close();
      ledger = open();
    };
    const counters = (partition = 'B1') => ledger.partitions().find((row) => row.name === partition) as PartitionCounters;
    const begin = (prompts: number, more: Partial<EnrolBatch> = {}) => {
      ledger.declarePartitions([{ name: 'B1', budget: 0, limit: 0 }]);
      ledger.recordLaunch(launch);
      ledger.enrol(batch({ prompts: enrolled(prompts), ...more }));
    };

    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'aerie-ledger-'));
      ledger = open();
    });
    afterEach(() => {
      ledger.close();
      rmSync(folder, { recursive: true });
    });

    describe('settings', () => {
      test('the identity of a run is empty until it is set, and survives a restart', () => {
        expect(ledger.identity()).toEqual({});
        ledger.setIdentity({ model: 'm', seed: 7 });
        reopen();
        expect(ledger.identity()).toEqual({ model: 'm', seed: 7 });
      });

      test('budgets and limits rise and never fall, and none is higher than every number', () => {
        ledger.declarePartitions([{ name: 'B1', budget: 100, limit: 10 }]);
        ledger.declarePartitions([{ name: 'B1', budget: 50, limit: 20 }]);
        expect(counters()).toMatchObject({ budget: 100, limit: 20, ordinal: 0 });
        ledger.declarePartitions([
          { name: 'B2', budget: 5, limit: 5 },
          { name: 'B1', budget: 0, limit: 0 },
        ]);
        ledger.declarePartitions([{ name: 'B1', budget: 100, limit: 10 }]);
        expect(counters()).toMatchObject({ budget: 0, limit: 0 });
        expect(ledger.partitions().map((row) => row.name)).toEqual(['B1', 'B2']);
      });

      test('a raised limit reopens the source it had closed', () => {
        ledger.declarePartitions([{ name: 'B1', budget: 0, limit: 2 }]);
        ledger.enrol(batch({ prompts: enrolled(2), enrolment: 'limited' }));
        ledger.declarePartitions([{ name: 'B1', budget: 0, limit: 2 }]);
        expect(counters().enrolment).toBe('limited');
        ledger.declarePartitions([{ name: 'B1', budget: 0, limit: 3 }]);
        expect(counters().enrolment).toBe('open');
      });

      test('what a person amends is taken exactly, and a source that is another one is read from its first row', () => {
        ledger.declarePartitions([{ name: 'B1', budget: 0, limit: 0 }]);
        const pin = { path: 'b1.jsonl', bytes: 10, mtimeMs: 12.5, sha256: 'aa', hashedBytes: 10 };
        ledger.enrol(batch({ prompts: enrolled(2), enrolment: 'complete', sourceRows: 2, promptsBytes: 200, pin }));
        ledger.declarePartitions([{ name: 'B1', budget: 9, limit: 1 }], true);
        expect(counters()).toMatchObject({ budget: 9, limit: 1 });
        ledger.reopenSource('B1');
        expect(counters()).toMatchObject({ enrolment: 'open', sourceRows: 0, enrolled: 2, promptsBytes: 200, pin: { path: '' } });
        const happening = { kind: 'run.amended', subject: 'r', facts: {} } as const;
        expect(ledger.setIdentity({ model: 'n' }, [happening])).toMatchObject([happening]);
      });

      test('a source that gave nothing but refusals is read anew without them', () => {
        ledger.declarePartitions([{ name: 'B1', budget: 0, limit: 0 }]);
        ledger.enrol(batch({ rejected: 2, rejectedBytes: 40, sourceRows: 2, enrolment: 'complete' }));
        ledger.reopenSource('B1');
        expect(counters()).toMatchObject({ enrolment: 'open', sourceRows: 0, rejected: 0, rejectedBytes: 0 });
        begin(2, { rejected: 1, rejectedBytes: 20 });
        ledger.reopenSource('B1');
        expect(counters()).toMatchObject({ enrolled: 2, rejected: 1, rejectedBytes: 20 });
      });

      test('a partition that was never declared is a bug', () => {
        expect(() => ledger.lease('nowhere', 1)).toThrow(/knows no partition nowhere/);
      });
    });

    describe('enrolment', () => {
      test('a batch brings its prompts, its counts and its place in the source', () => {
        begin(3, { duplicates: 1, rejected: 2, sourceRows: 6, promptsBytes: 300, rejectedBytes: 40, enrolment: 'complete' });
        const pin = { path: 'b1.jsonl', bytes: 10, mtimeMs: 12.5, sha256: 'aa', hashedBytes: 10 };
        ledger.enrol(batch({ sourceRows: 7, duplicates: 1, pin }));
        expect(counters()).toMatchObject({ enrolled: 3, waiting: 3, duplicates: 2, rejected: 2, sourceRows: 7, pin });
      });

      test('known ids are those of this partition alone', () => {
        begin(3);
        ledger.declarePartitions([{ name: 'B2', budget: 0, limit: 0 }]);
        expect(ledger.knownIds('B1', ['p1', 'p9'])).toEqual(new Set(['p1']));
        expect(ledger.knownIds('B2', ['p1'])).toEqual(new Set());
        expect(ledger.knownIds('B1', [])).toEqual(new Set());
      });

      test('a batch with one known id leaves nothing behind', () => {
        begin(2);
        const again = batch({
          prompts: [prompt('new'), prompt('p1')],
          sourceRows: 99,
          happenings: [{ kind: 'partition.enrolled', subject: 'B1', facts: {} }],
        });
        expect(() => ledger.enrol(again)).toThrow();
        expect(ledger.knownIds('B1', ['new'])).toEqual(new Set());
        expect(counters()).toMatchObject({ enrolled: 2, sourceRows: 0 });
        expect(ledger.events(0)).toEqual([]);
      });
    });

    describe('leases', () => {
      test('prompts are leased in the order of the source, each once', () => {
        begin(5);
        expect(ledger.lease('B1', 3).map((lease) => lease.id)).toEqual(['p0', 'p1', 'p2']);
        expect(ledger.lease('B1', 3).map((lease) => lease.id)).toEqual(['p3', 'p4']);
        expect(ledger.lease('B1', 3)).toEqual([]);
        expect(counters()).toMatchObject({ waiting: 0, leased: 5 });
      });

      test('a restart makes leased prompts wait again, and their next fence is higher', () => {
        begin(2);
        const [before] = ledger.lease('B1', 1);
        reopen();
        expect(ledger.releaseLeases()).toBe(1);
        const [after] = ledger.lease('B1', 1);
        expect(after).toEqual({ ...before, fence: (before?.fence ?? 0) + 1 });
      });

      test('begun conversations come first, with the turns they have', () => {
        begin(3);
        const leases = ledger.lease('B1', 3);
        ledger.commit(commitOf({ turns: [turnOf(leases[2], 0), turnOf(leases[2], 1, { body: '"second"' })] }));
        expect(ledger.releaseLeases()).toBe(3);
        expect(ledger.lease('B1', 9, true).map((lease) => [lease.id, lease.finishedTurns])).toEqual([
          ['p2', ['"turn 0"', '"second"']],
        ]);
        expect(ledger.releaseLeases()).toBe(1);
        expect(ledger.lease('B1', 2).map((lease) => lease.id)).toEqual(['p2', 'p0']);
      });

      test('a lease that was given back cannot be committed nor given back again', () => {
        begin(1);
        const leases = ledger.lease('B1', 1);
        ledger.unlease(leases);
        expect(counters()).toMatchObject({ waiting: 1, leased: 0 });
        expect(() => ledger.unlease(leases)).toThrow(/not leased with fence/);
        expect(() => ledger.commit(commitOf({ records: [recordOf(leases[0])] }))).toThrow(/not leased with fence/);
      });
    });

    describe('commits', () => {
      test('a record spends only what its turns have not spent, and its turns are gone', () => {
        begin(1);
        const [lease] = ledger.lease('B1', 1);
        ledger.commit(commitOf({ turns: [turnOf(lease, 0, { tokens: 30, truncated: true })] }));
        expect(counters()).toMatchObject({ spentTokens: 30, generatedTokens: 30, answers: 1, truncated: 1, leased: 1 });
        ledger.commit(commitOf({ records: [recordOf(lease, { tokens: 50, turns: 2, truncated: 1 })] }));
        expect(counters()).toMatchObject({ spentTokens: 50, generatedTokens: 50, answers: 2, truncated: 1, leased: 0, done: 1 });
        expect(ledger.releaseLeases()).toBe(0);
        expect(ledger.lease('B1', 1)).toEqual([]);
      });

      test('a commit with one stale fence leaves nothing behind', () => {
        begin(2);
        const [first, second] = ledger.lease('B1', 2) as [Lease, Lease];
        const before = counters();
        const mixed = commitOf({
          turns: [turnOf(first, 0)],
          records: [recordOf({ ...second, fence: second.fence - 1 })],
          attempts: [attempt(first)],
          happenings: [{ kind: 'prompt.set-aside', subject: 'p0', facts: {} }],
        });
        expect(() => ledger.commit(mixed)).toThrow(/not leased with fence/);
        expect(counters()).toEqual(before);
        expect([ledger.events(0), ledger.shards(), ledger.outcomeCounts()]).toEqual([[], [], {}]);
      });

      test.each([
        ['twice', 0],
        ['before the one before it', 2],
      ])('a turn cannot be finished %s', (_, turn) => {
        begin(1);
        const [lease] = ledger.lease('B1', 1);
        ledger.commit(commitOf({ turns: [turnOf(lease, 0)] }));
        expect(() => ledger.commit(commitOf({ turns: [turnOf(lease, turn)] }))).toThrow(/turn 1 is next/);
      });

      test('a prompt that is done cannot get a second record', () => {
        begin(1);
        const [lease] = ledger.lease('B1', 1);
        const record = recordOf(lease);
        ledger.commit(commitOf({ records: [record] }));
        expect(() => ledger.commit(commitOf({ records: [{ ...record, offset: record.bytes }] }))).toThrow(/not leased/);
        expect([...ledger.liveRecords('B1')]).toHaveLength(1);
      });

      test('a record that holds less than its finished turns is refused', () => {
        begin(1);
        const [lease] = ledger.lease('B1', 1);
        ledger.commit(commitOf({ turns: [turnOf(lease, 0, { tokens: 30 })] }));
        expect(() => ledger.commit(commitOf({ records: [recordOf(lease, { tokens: 29 })] }))).toThrow(/less than the turns/);
      });

      test('setting a prompt aside takes its turns out of the budget and keeps what they cost', () => {
        begin(1);
        const [lease] = ledger.lease('B1', 1) as [Lease];
        ledger.commit(
          commitOf({
            turns: [turnOf(lease, 0, { tokens: 30, truncated: true })],
            asides: [{ ...lease, reason: 'poison-fails', because: 'failed 5 times' }],
          }),
        );
        expect(counters()).toMatchObject({ spentTokens: 0, generatedTokens: 30, answers: 0, truncated: 0, aside: 1, leased: 0 });
        const aside = { partition: 'B1', id: 'p0', reason: 'poison-fails', because: 'failed 5 times' };
        expect(ledger.setAsides('B1')).toEqual([aside]);
      });

      test('prompts set aside are counted by their reason, in their own partition, and the first of them can be had', () => {
        begin(4);
        ledger.declarePartitions([{ name: 'B2', budget: 0, limit: 0 }]);
        const reasons = ['longer-than-context', 'poison-kills', 'longer-than-context', 'refused'] as const;
        const asides = ledger
          .lease('B1', 4)
          .map((lease, at) => ({ ...lease, reason: reasons[at] ?? 'refused', because: `${at}` }));
        ledger.commit(commitOf({ asides }));
        expect(ledger.asideCounts('B1')).toEqual({ 'longer-than-context': 2, 'poison-kills': 1, refused: 1 });
        expect([ledger.asideCounts('B2'), ledger.setAsides('B2')]).toEqual([{}, []]);
        expect(ledger.setAsides('B1', 2).map(({ id, reason }) => [id, reason])).toEqual([
          ['p0', 'longer-than-context'],
          ['p1', 'poison-kills'],
        ]);
        expect(ledger.setAsides('B1')).toHaveLength(4);
      });

      test('attempts are counted by outcome, and what they wasted is generated and never spent', () => {
        begin(1);
        const [lease] = ledger.lease('B1', 1);
        const attempts = [
          attempt(lease),
          attempt(lease, { outcome: 'malformed', tokens: 7 }),
          attempt(lease, { outcome: 'malformed', tokens: 5 }),
        ];
        ledger.commit(commitOf({ attempts }));
        expect(ledger.outcomeCounts()).toEqual({ completed: 1, malformed: 2 });
        expect(counters()).toMatchObject({ spentTokens: 0, generatedTokens: 12 });
      });

      test('what belongs to no launch is refused', () => {
        begin(1);
        const [lease] = ledger.lease('B1', 1);
        expect(() => ledger.commit(commitOf({ records: [recordOf(lease, { launch: 99 })] }))).toThrow();
      });
    });

    describe('new attempts', () => {
      /** Two prompts done, one record each. */
      const finish = (changed: Partial<Parameters<typeof recordOf>[1]> = {}) => {
        begin(2);
        const leases = ledger.lease('B1', 2);
        const records = leases.map((lease, nth) => recordOf(lease, { offset: nth * 100, ...changed }));
        ledger.commit(commitOf({ records }));
      };
      const live = () => [...ledger.liveRecords('B1')].map(({ id, offset }) => [id, offset]);

      test('a record stays live until the new one is committed, which supersedes it and takes its tokens back', () => {
        finish({ tokens: 20, turns: 2, truncated: 1 });
        const { records, events } = ledger.supersede('B1', ['p1', 'p9'], 'repetition-loop');
        expect(records).toBe(1);
        expect(events).toMatchObject([
          { kind: 'partition.redoing', subject: 'B1', facts: { records: 1, because: 'repetition-loop' } },
        ]);
        expect(counters()).toMatchObject({ done: 1, waiting: 1, redoing: 1, spentTokens: 40, answers: 4, truncated: 2 });
        expect(live()).toEqual([
          ['p0', 0],
          ['p1', 100],
        ]);

        const [lease] = ledger.lease('B1', 9, true);
        expect(lease).toMatchObject({ id: 'p1', round: 1, finishedTurns: [], replaces: { tokens: 20, turns: 2, truncated: 1 } });
        ledger.commit(commitOf({ turns: [turnOf(lease, 0, { tokens: 7 })] }));
        expect(counters()).toMatchObject({ spentTokens: 47, answers: 5, redoing: 1 });
        expect(live()).toEqual([
          ['p0', 0],
          ['p1', 100],
        ]);
        ledger.commit(commitOf({ records: [recordOf(lease, { offset: 200, tokens: 9, turns: 2 })] }));
        expect(live()).toEqual([
          ['p0', 0],
          ['p1', 200],
        ]);
        expect(counters()).toMatchObject({ done: 2, waiting: 0, leased: 0, redoing: 0, answers: 4, truncated: 1 });
        expect(counters()).toMatchObject({ spentTokens: 29, generatedTokens: 49 });
      });

      test('what was marked is marked once, and survives a restart in the middle', () => {
        finish();
        expect(ledger.supersede('B1', ['p0'], 'x').records).toBe(1);
        expect(ledger.supersede('B1', ['p0'], 'x')).toEqual({ records: 0, events: [] });
        ledger.lease('B1', 1);
        reopen();
        expect(ledger.releaseLeases()).toBe(1);
        expect(counters()).toMatchObject({ done: 1, waiting: 1, redoing: 1 });
        expect(live()).toEqual([
          ['p0', 0],
          ['p1', 100],
        ]);
        expect(ledger.lease('B1', 1)).toMatchObject([{ id: 'p0', round: 1 }]);
      });

      test.each(['asides', 'drops'] as const)(
        'a new attempt that ends in %s leaves the record it had, and its tokens',
        (kind) => {
          finish();
          const before = { ...counters(), generatedTokens: 55 };
          ledger.supersede('B1', ['p0'], 'x');
          const [lease] = ledger.lease('B1', 1) as [Lease];
          const turns = [turnOf(lease, 0, { tokens: 15 })];
          ledger.commit(commitOf({ turns, [kind]: [{ ...lease, reason: 'poison-fails', because: 'x' }] }));
          expect(counters()).toEqual(before);
          expect(live()).toEqual([
            ['p0', 0],
            ['p1', 100],
          ]);
          expect(ledger.setAsides('B1')).toEqual([]);
          expect(ledger.supersede('B1', ['p0'], 'x').records).toBe(1);
          expect(ledger.lease('B1', 1)).toMatchObject([{ id: 'p0', round: 2 }]);
        },
      );

      test('a dropped prompt spends nothing and is no record; what it cost stays generated', () => {
        begin(1);
        const [lease] = ledger.lease('B1', 1) as [Lease];
        ledger.commit(commitOf({ turns: [turnOf(lease, 0, { tokens: 30, truncated: true })], drops: [lease] }));
        expect(counters()).toMatchObject({
          dropped: 1,
          leased: 0,
          spentTokens: 0,
          generatedTokens: 30,
          answers: 0,
          truncated: 0,
        });
        expect([live(), ledger.setAsides('B1'), ledger.lease('B1', 1)]).toEqual([[], [], []]);
      });

      test('prompts without a record wait again: those set aside as they were, dropped ones as a new attempt', () => {
        begin(3);
        const leases = ledger.lease('B1', 3) as [Lease, Lease, Lease];
        const record = recordOf(leases[2]);
        const aside = { ...leases[0], reason: 'refused' as const, because: 'HTTP 400' };
        ledger.commit(commitOf({ asides: [aside], drops: [leases[1]], records: [record] }));
        expect(ledger.asideCounts('B1')).toEqual({ refused: 1 });
        const { events, ...counts } = ledger.requeue('B1');
        expect(counts).toEqual({ aside: 1, dropped: 1 });
        expect(events).toMatchObject([{ kind: 'partition.requeued', subject: 'B1', facts: counts }]);
        expect(counters()).toMatchObject({ waiting: 2, aside: 0, dropped: 0, done: 1 });
        expect([ledger.setAsides('B1'), ledger.asideCounts('B1')]).toEqual([[], {}]);
        expect(ledger.lease('B1', 9).map(({ id, round }) => [id, round])).toEqual([
          ['p0', 0],
          ['p1', 1],
        ]);
        expect(ledger.requeue('B1')).toEqual({ aside: 0, dropped: 0, events: [] });
      });
    });

    describe('withdrawing', () => {
      const bad = { ...launch, kvCacheDtype: 'q8_0' };
      const live = () => [...ledger.liveRecords('B1')].map(({ id, offset }) => [id, offset]);
      const waiting = () => ledger.lease('B1', 99).map(({ id, round, finishedTurns }) => [id, round, finishedTurns.length]);

      /** p0 by launch 1, p1 by launch 2; p2 begun by launch 2, p3 by launch 1, and both wait; p4 aside. Launch 2 is to go. */
      const mixed = () => {
        begin(5);
        ledger.recordLaunch(bad);
        const [a, b, c, d, e] = ledger.lease('B1', 5) as [Lease, Lease, Lease, Lease, Lease];
        ledger.commit(
          commitOf({
            turns: [turnOf(c, 0, { tokens: 7, truncated: true, launch: 2 }), turnOf(d, 0, { tokens: 3 })],
            records: [
              recordOf(a, { tokens: 20, turns: 2 }),
              recordOf(b, { offset: 100, tokens: 40, turns: 2, truncated: 1, launch: 2 }),
            ],
            asides: [{ ...e, reason: 'refused', because: 'x' }],
          }),
        );
        ledger.releaseLeases();
      };

      test('records of a launch are withdrawn, what it began begins anew, and the budget has their tokens back', () => {
        mixed();
        const { events, ...counts } = ledger.withdraw([2], 'FP8 KV degrades it');
        const all = { records: 1, turns: 3, prompts: 2, tokens: 47 };
        expect(counts).toEqual({ ...all, partitions: [{ partition: 'B1', ...all }] });
        const facts = { ...all, because: 'FP8 KV degrades it', launches: '2' };
        expect(events).toMatchObject([{ kind: 'partition.withdrawn', subject: 'B1', facts }]);
        expect(live()).toEqual([['p0', 0]]);
        expect(counters()).toMatchObject({ done: 1, waiting: 3, aside: 1, redoing: 0, leased: 0 });
        expect(counters()).toMatchObject({ spentTokens: 23, generatedTokens: 70, answers: 3, truncated: 0 });
        expect(ledger.shards()).toMatchObject([{ committedBytes: 200, records: 2 }]);
        expect(ledger.launches().map(({ id, kvCacheDtype, isWithdrawn }) => [id, kvCacheDtype, isWithdrawn])).toEqual([
          [1, 'f16', false],
          [2, 'q8_0', true],
        ]);
        expect(waiting()).toEqual([
          ['p3', 0, 1],
          ['p1', 1, 0],
          ['p2', 1, 0],
        ]);
      });

      test('a second time, and after a restart, there is nothing left to withdraw', () => {
        mixed();
        ledger.withdraw([2], 'x');
        const before = counters();
        const nothing = { records: 0, turns: 0, prompts: 0, tokens: 0, partitions: [], events: [] };
        expect(ledger.withdraw([2], 'x')).toEqual(nothing);
        reopen();
        expect(ledger.withdraw([2], 'x')).toEqual(nothing);
        expect(ledger.withdraw([], 'x')).toEqual(nothing);
        expect(counters()).toEqual(before);
      });

      test('a launch that is not there is a bug, and withdraws nothing', () => {
        mixed();
        expect(() => ledger.withdraw([2, 9], 'x')).toThrow(/Launch 9 was withdrawn and is not in the ledger/);
        expect(live()).toHaveLength(2);
        expect(ledger.launches().some(({ isWithdrawn }) => isWithdrawn)).toBe(false);
      });

      test('one turn of it among others is enough', () => {
        begin(3);
        for (let more = 0; more < 2; more++) ledger.recordLaunch(launch);
        const [a, b, c] = ledger.lease('B1', 3) as [Lease, Lease, Lease];
        ledger.commit(
          commitOf({
            turns: [turnOf(a, 0, { launch: 2 }), turnOf(b, 0, { launch: 1, alsoBy: [2] }), turnOf(c, 0, { launch: 3 })],
            records: [
              recordOf(a, { turns: 2 }),
              recordOf(b, { turns: 2, offset: 100 }),
              recordOf(c, { turns: 2, offset: 200, launch: 1, alsoBy: [3] }),
            ],
          }),
        );
        expect(ledger.withdraw([2], 'x')).toMatchObject({ records: 2, turns: 4 });
        expect(live()).toEqual([['p2', 200]]);
        expect(ledger.withdraw([3], 'x')).toMatchObject({ records: 1, turns: 2 });
        expect(live()).toEqual([]);
      });

      test('a record that is being made anew is withdrawn too, and its prompt simply waits', () => {
        mixed();
        ledger.supersede('B1', ['p0', 'p1'], 'looped');
        expect(ledger.withdraw([2], 'x')).toMatchObject({ records: 1, prompts: 2 });
        expect(counters()).toMatchObject({ done: 0, waiting: 4, redoing: 1 });
        const [first, second, third] = ledger.lease('B1', 3);
        expect(first).toMatchObject({ id: 'p0', round: 1, replaces: { tokens: 20, turns: 2, truncated: 0 } });
        expect(second).toMatchObject({ id: 'p3' });
        expect(third).toEqual({
          partition: 'B1',
          id: 'p1',
          offset: 0,
          bytes: 100,
          turns: 2,
          fence: 2,
          finishedTurns: [],
          round: 1,
        });
        ledger.commit(commitOf({ records: [recordOf(third, { offset: 200, tokens: 5 })] }));
        expect(live()).toEqual([
          ['p0', 0],
          ['p1', 200],
        ]);
      });

      test('what is superseded stays so, and the newer record of another launch stays live', () => {
        mixed();
        ledger.supersede('B1', ['p1'], 'looped');
        const [lease] = ledger.lease('B1', 1, true);
        ledger.commit(commitOf({ records: [recordOf(lease, { offset: 200 })] }));
        expect(ledger.withdraw([2], 'x')).toMatchObject({ records: 0, turns: 1, prompts: 1, tokens: 7 });
        expect(live()).toEqual([
          ['p0', 0],
          ['p1', 200],
        ]);
      });

      test('a record that is committed later is entered as withdrawn, and its prompt waits again', () => {
        begin(3);
        ledger.recordLaunch(bad);
        const [a, b, c] = ledger.lease('B1', 3) as [Lease, Lease, Lease];
        ledger.commit(commitOf({ turns: [turnOf(b, 0, { launch: 2, tokens: 7 })] }));
        expect(ledger.withdraw([2], 'x')).toMatchObject({ records: 0, turns: 0, prompts: 0 });
        const records = [
          recordOf(a, { tokens: 9, launch: 2 }),
          recordOf(b, { tokens: 20, turns: 2, offset: 100 }), // its first turn is
          recordOf(c, { tokens: 5, offset: 200 }),
        ];
        const facts = { records: 2, turns: 3, prompts: 2, tokens: 29, launches: '2, 1' };
        expect(ledger.commit(commitOf({ records }))).toMatchObject([{ kind: 'partition.withdrawn', subject: 'B1', facts }]);
        expect(live()).toEqual([['p2', 200]]);
        expect(counters()).toMatchObject({ done: 1, waiting: 2, leased: 0, spentTokens: 5, generatedTokens: 34, answers: 1 });
        expect(waiting()).toEqual([
          ['p0', 1, 0],
          ['p1', 1, 0],
        ]);
      });

      test('a record that comes too late takes the place of none', () => {
        mixed();
        ledger.supersede('B1', ['p0'], 'looped');
        const [lease] = ledger.lease('B1', 1, true) as [Lease];
        ledger.withdraw([2], 'x');
        ledger.commit(commitOf({ records: [recordOf(lease, { offset: 200, launch: 2 })] }));
        expect(live()).toEqual([['p0', 0]]);
        expect(counters()).toMatchObject({ redoing: 1, done: 0 });
        expect(ledger.lease('B1', 1)).toMatchObject([{ id: 'p0', round: 2, replaces: { tokens: 20 } }]);
      });

      test.each(['restart', 'unlease'])('turns that a lease still held at that time are forgotten with it (%s)', (how) => {
        begin(1);
        ledger.recordLaunch(bad);
        const leases = ledger.lease('B1', 1);
        ledger.commit(commitOf({ turns: [turnOf(leases[0], 0, { launch: 2 })] }));
        ledger.withdraw([2], 'x');
        if (how === 'restart') reopen();
        if (how === 'restart') ledger.releaseLeases();
        else ledger.unlease(leases);
        expect(counters()).toMatchObject({ waiting: 1, spentTokens: 0, generatedTokens: 10, answers: 0 });
        expect(waiting()).toEqual([['p0', 1, 0]]);
      });

      test('a rule is added once, with what it withdraws, and is there after a restart', () => {
        mixed();
        const rule = { forbid: { kvCache: 'below-16-bit' }, because: 'FP8 KV degrades it', by: 'owner' } as const;
        const { events, ...counts } = ledger.addRule(rule, [2]);
        expect(counts).toMatchObject({ records: 1, turns: 3, prompts: 2, tokens: 47 });
        expect(events.map(({ kind }) => kind)).toEqual(['policy.added', 'partition.withdrawn']);
        expect(events[0]?.facts).toEqual({ rule: 'forbid kv-cache: below-16-bit', because: rule.because, by: 'owner' });
        reopen();
        expect(ledger.addedRules()).toEqual([{ rule, at: 1_000 }]);
        expect(ledger.addRule(rule, [2]).events).toEqual([]);
        const other = { ...rule, by: 'somebody else' };
        expect(ledger.addRule(other, []).events).toHaveLength(1);
        expect(ledger.addedRules()).toEqual([rule, other].map((added) => ({ rule: added, at: 1_000 })));
      });
    });

    describe('shards', () => {
      test('a shard is there from its first record and grows by what is committed', () => {
        begin(3);
        const [a, b, c] = ledger.lease('B1', 3);
        ledger.commit(commitOf({ records: [recordOf(a, { offset: 0, bytes: 10 }), recordOf(b, { offset: 10, bytes: 5 })] }));
        ledger.commit(commitOf({ records: [recordOf(c, { shard: 1, offset: 0, bytes: 7 })] }));
        const open = { partition: 'B1', sealed: false, sha256: '' };
        expect(ledger.shards()).toEqual([
          { ...open, number: 0, committedBytes: 15, records: 2 },
          { ...open, number: 1, committedBytes: 7, records: 1 },
        ]);
        expect([...ledger.liveRecords('B1')].map(({ id, shard, offset }) => [id, shard, offset])).toEqual([
          ['p0', 0, 0],
          ['p1', 0, 10],
          ['p2', 1, 0],
        ]);
      });

      test('a gap between two records is refused', () => {
        begin(1);
        const [lease] = ledger.lease('B1', 1);
        expect(() => ledger.commit(commitOf({ records: [recordOf(lease, { offset: 1 })] }))).toThrow(
          /begins at byte 1 of shard 0, which ends at 0/,
        );
      });

      test('a sealed shard takes no record and is sealed once', () => {
        begin(2);
        const [a, b] = ledger.lease('B1', 2);
        ledger.commit(commitOf({ records: [recordOf(a, { bytes: 10 })] }));
        const happening = { kind: 'shard.sealed', subject: 'B1', facts: { shard: 0 } } as const;
        expect(ledger.sealShard('B1', 0, 'ff', happening)).toEqual([{ ...happening, n: 1, at: 1_000 }]);
        expect(ledger.shards()).toMatchObject([{ sealed: true, sha256: 'ff' }]);
        expect(() => ledger.sealShard('B1', 0, 'ff', happening)).toThrow(/not open/);
        expect(() => ledger.commit(commitOf({ records: [recordOf(b, { offset: 10 })] }))).toThrow(/sealed/);
      });

      test('live records can be walked while others are committed', () => {
        const many = 2_500; // more than two pages of any reasonable size
        begin(many);
        const records = ledger.lease('B1', many).map((lease, index) => recordOf(lease, { offset: index, bytes: 1 }));
        ledger.commit(commitOf({ records: records.slice(0, -1) }));
        const seen: string[] = [];
        for (const record of ledger.liveRecords('B1')) {
          if (seen.length === 0) ledger.commit(commitOf({ records: records.slice(-1) }));
          seen.push(record.id);
        }
        expect(seen).toEqual(records.map((record) => record.id));
      });
    });

    describe('events', () => {
      const happening = { kind: 'run.started', subject: 'r', facts: { prompts: 3, resumed: false, name: 'x' } } as const;

      test('they are numbered in order over a restart, and read after a number', () => {
        expect(ledger.emit([happening, happening]).map((event) => event.n)).toEqual([1, 2]);
        reopen();
        expect(ledger.emit([happening])).toEqual([{ ...happening, n: 3, at: 1_000 }]);
        expect(ledger.events(1, 1)).toEqual([{ ...happening, n: 2, at: 1_000 }]);
        expect(ledger.events(0).map((event) => event.n)).toEqual([1, 2, 3]);
      });

      test('those of a commit are numbered with it', () => {
        begin(1);
        const [lease] = ledger.lease('B1', 1);
        const turns: FinishedTurn[] = [turnOf(lease, 0)];
        expect(ledger.commit(commitOf({ turns, happenings: [happening] }))).toEqual([{ ...happening, n: 1, at: 1_000 }]);
      });
    });
  });
}
