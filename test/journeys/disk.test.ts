/**
 * A run folder that cannot be written: a full disk wherever it may strike, a read-only one, and one that another worker
 * holds. Real small disks, real processes.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { proves } from '../proves.ts';
import { type BenchPlan, type CrashBench, onBench, until, type WorkerEnd } from '../support/crash-bench.ts';
import { onSmallDisk, whyNoSmallDisk } from '../support/tmpfs.ts';

const PLAN: BenchPlan = {
  partitions: [{ name: 'A', single: 60, triple: 20, duplicates: 2, bad: 2 }],
  inFlight: 8,
  latency: { kind: 'uniform', minMs: 5, maxMs: 15 },
};
const KIB = 1024;
const AMPLE = 64 * KIB * KIB;

const noDisk = whyNoSmallDisk();
if (noDisk !== undefined && process.env['AERIE_REQUIRE_ALL'] === '1') throw new Error(`full disks must be tested: ${noDisk}`);

interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly remedy: string;
  readonly facts: Readonly<Record<string, string | number>>;
}

const refusalOf = (end: WorkerEnd): Refusal => (JSON.parse(end.stdout) as { error: Refusal }).error;

/** The disk at `place` of the bench fills, the run ends with what is committed; with room, the same command finishes it. */
async function fillUp(bench: CrashBench, place: string, bytes: number): Promise<Refusal> {
  let refusal: Refusal | undefined;
  await onSmallDisk(join(bench.folder, place), bytes, async (disk) => {
    const end = await bench.endOf(bench.startWorker());
    expect(end.code, end.stdout + end.stderr).toBe(5);
    refusal = refusalOf(end);
    expect(refusal.code).toBe('disk.full');
    bench.judge.look();
    const again = await bench.endOf(bench.startWorker()); // nothing was freed: it says so again, and breaks nothing
    expect([again.code, refusalOf(again).code], again.stderr).toEqual([5, 'disk.full']);
    bench.judge.look();
    disk.resize(AMPLE);
    await bench.finish();
    bench.judge.finish();
  });
  if (refusal === undefined) throw new Error('no disk was filled');
  return refusal;
}

if (noDisk !== undefined) {
  test.skip(`full and read-only disks (${noDisk})`, () => undefined);
  proves(
    'disk:read-only-is-clear',
    'a new run in a folder without the right to write is refused before anything is asked',
    (): Promise<void> =>
      onBench(PLAN, async (bench) => {
        mkdirSync(join(bench.folder, 'runs'), { mode: 0o555 });
        const end = await bench.endOf(bench.startWorker());
        expect([end.code, refusalOf(end).code], end.stdout + end.stderr).toEqual([3, 'disk.read-only']);
        expect(bench.journalLines()).toBe(0);
      }),
  );
} else {
  const places = [
    {
      ...{ what: 'a shard', place: 'runs/crash/records', kib: 24, path: 'records/A/00000.jsonl' },
      remedy: /^[\d,]+ of [\d,]+ prompts are done and on disk in .*\nFree space/,
    },
    // The first batch of prompts does not fit, so none of them is the run's yet.
    {
      ...{ what: 'the prompts of an enrolment', place: 'runs/crash/prompts', kib: 4, path: 'prompts/A.jsonl' },
      remedy: /^No prompt was taken yet\.\nFree space/,
    },
  ];
  for (const { what, place, kib, path, remedy } of places) {
    proves('disk:full-is-resumable', `a disk that fills under ${what} ends the run, and the same command goes on`, () =>
      onBench(PLAN, async (bench) => {
        const refusal = await fillUp(bench, place, kib * KIB);
        expect(refusal.message).toContain(join(bench.runFolder, path));
        expect(refusal.remedy).toMatch(remedy);
      }),
    );
  }

  proves('disk:full-is-resumable', 'a disk that fills at any moment of a run loses nothing', async () => {
    const hit = new Set<string>();
    for (const kib of [60, 208, 500, 720]) {
      await onBench(PLAN, async (bench) => {
        const { facts } = await fillUp(bench, 'runs', kib * KIB);
        hit.add(String(facts['path']).slice(bench.runFolder.length + 1));
      });
    }
    expect([...hit]).toContain('ledger.sqlite');
  });

  proves('disk:full-is-resumable', 'a log that cannot grow does not stop a run: the ledger has what it would have said', () =>
    onBench(PLAN, async (bench) => {
      await onSmallDisk(join(bench.runFolder, 'logs'), 4 * KIB, async () => {
        writeFileSync(join(bench.runFolder, 'logs', 'filler'), Buffer.alloc(4 * KIB));
        await bench.finish();
        expect(bench.sizeOf('logs/aerie.log')).toBe(0);
        bench.judge.finish();
      });
    }),
  );

  proves('disk:read-only-is-clear', 'a begun run on a disk that became read-only is refused before anything is asked', () =>
    onBench(PLAN, async (bench) => {
      await onSmallDisk(join(bench.folder, 'runs'), AMPLE, async (disk) => {
        await bench.liveUntil('after-commit', 3);
        bench.judge.look();
        await delay(200); // what was in flight at the kill
        const asked = bench.journalLines();
        disk.makeReadOnly();
        const end = await bench.endOf(bench.startWorker());
        expect([end.code, refusalOf(end).code], end.stdout + end.stderr).toEqual([3, 'disk.read-only']);
        expect(bench.journalLines()).toBe(asked);
        disk.makeWritable();
        await bench.finish();
        bench.judge.finish();
      });
    }),
  );

  proves('disk:read-only-is-clear', 'a new run on a read-only disk is refused before anything is asked', () =>
    onBench(PLAN, async (bench) => {
      await onSmallDisk(join(bench.folder, 'runs'), AMPLE, async (disk) => {
        disk.makeReadOnly();
        const end = await bench.endOf(bench.startWorker());
        expect([end.code, refusalOf(end).code], end.stdout + end.stderr).toEqual([3, 'disk.read-only']);
        expect(refusalOf(end).message).toContain(bench.runFolder);
        expect(bench.journalLines()).toBe(0);
      });
    }),
  );
}

proves('worker:one-per-run', 'a second worker is refused with the first one named, and may begin at once after kill -9', () =>
  onBench({ ...PLAN, latency: { kind: 'uniform', minMs: 100, maxMs: 200 } }, async (bench) => {
    const first = bench.startWorker();
    await until(() => bench.journalLines() > 20, first);
    const refused = await bench.endOf(bench.startWorker());
    expect([refused.code, refusalOf(refused).code], refused.stderr).toEqual([3, 'ledger.held-elsewhere']);
    expect(refusalOf(refused).message).toContain(`pid ${first.pid} `);
    expect(first.hasExited()).toBe(false);
    expect(await bench.killWorker(first)).toBe(true);
    bench.judge.look();
    const second = bench.startWorker();
    const asked = bench.journalLines();
    expect(await until(() => bench.journalLines() > asked + 20, second)).toBe(true);
    expect(await bench.killWorker(second)).toBe(true);
    await bench.finish();
    bench.judge.finish();
  }),
);
