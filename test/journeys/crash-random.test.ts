/**
 * Kills at any moment: of Aerie, of the engine, or of both, by what has happened or by the clock. Then the same command
 * finishes the run, and the judge compares all of it with what was put in and with what the engine says it answered.
 */
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { proves } from '../proves.ts';
import { type BenchPlan, type CrashBench, KILLS, onBench, SCALE, until, type Worker } from '../support/crash-bench.ts';

/** Fixed, so that a failure is the same failure tomorrow; the timing of the processes varies enough by itself. */
const SEED = 4_711;
const LONG_MS = 120_000 * SCALE;

const PLAN: BenchPlan = {
  partitions: [
    { name: 'A', single: 80, triple: 30, duplicates: 6, bad: 3 },
    { name: 'B', single: 25, triple: 5, duplicates: 1, bad: 1 },
    { name: 'C', single: 0, triple: 20, duplicates: 0, bad: 0 },
  ],
  inFlight: 10,
};

interface Kill {
  readonly who: 'aerie' | 'engine' | 'both';
  /** After so many more lines of the journal, or so many milliseconds. A start takes some 400 ms. */
  readonly after: { readonly unit: 'lines' | 'ms'; readonly count: number };
  /** Look at the ledger as any reader may, right before. */
  readonly peek: boolean;
  readonly awayMs: number;
}

const kill: fc.Arbitrary<Kill> = fc.record({
  who: fc.constantFrom('aerie', 'aerie', 'engine', 'both'),
  after: fc.oneof(
    fc.record({ unit: fc.constant('lines' as const), count: fc.integer({ min: 1, max: 60 }) }),
    fc.record({ unit: fc.constant('ms' as const), count: fc.integer({ min: 50, max: 1_000 }) }),
  ),
  peek: fc.boolean(),
  awayMs: fc.integer({ min: 0, max: 300 }),
});

let killed = 0;

async function onKillBench(plan: BenchPlan, body: (bench: CrashBench) => Promise<void>): Promise<void> {
  await onBench(plan, async (bench) => {
    await body(bench);
    killed += bench.kills;
  });
}

async function waitFor({ after }: Kill, bench: CrashBench, worker: Worker): Promise<void> {
  if (after.unit === 'ms') return await delay(after.count);
  const from = bench.journalLines();
  await until(() => bench.journalLines() >= from + after.count, worker);
}

async function live(kills: readonly Kill[], bench: CrashBench): Promise<void> {
  let worker = bench.startWorker();
  for (const next of kills) {
    await waitFor(next, bench, worker);
    if (worker.hasExited()) break;
    if (next.peek) bench.judge.peek();
    if (next.who === 'engine') {
      await bench.killEngine(next.awayMs);
      continue;
    }
    await Promise.all([bench.killWorker(worker), next.who === 'both' ? bench.killEngine() : undefined]);
    bench.judge.look();
    worker = bench.startWorker();
  }
  const end = await bench.endOf(worker);
  expect(end.code, end.stdout + end.stderr).toBe(0);
}

proves(
  'record:exactly-once',
  'killed at random moments, Aerie, the engine or both, a run has each prompt once',
  async () => {
    const property = fc.asyncProperty(fc.array(kill, { minLength: 8, maxLength: 8 }), async (kills) => {
      await onKillBench(PLAN, async (bench) => {
        await live(kills, bench);
        await bench.finish(); // one more finds nothing to do
        bench.judge.finish();
      });
    });
    await fc.assert(property, { seed: SEED, numRuns: 3 * SCALE, endOnFailure: true });
  },
  LONG_MS,
);

proves(
  'record:ids-from-engine',
  'after kills in the middle of conversations, every id of every record is one that the engine gave for it',
  async () => {
    await onKillBench({ ...PLAN, partitions: [{ name: 'T', single: 0, triple: 60, duplicates: 0, bad: 0 }] }, async (bench) => {
      for (const lines of [25, 40, 55]) {
        const worker = bench.startWorker();
        const from = bench.journalLines();
        await until(() => bench.journalLines() >= from + lines, worker);
        await bench.killWorker(worker);
        bench.judge.look();
      }
      await bench.finish();
      bench.judge.finish();
      expect(bench.judge.seen.records).toBe(60);
    });
  },
  LONG_MS,
);

proves(
  'turn:finished-survives',
  'turns that were stored before a kill are used afterwards and never asked again',
  async () => {
    await onKillBench({ ...PLAN, partitions: [{ name: 'T', single: 0, triple: 50, duplicates: 0, bad: 0 }] }, async (bench) => {
      // A commit on a busy machine holds one answer, on an idle one ten.
      for (let life = 0; life < 8 && bench.judge.seen.turns < 10; life++) {
        expect(await bench.liveUntil('after-commit', 3)).toBe(true);
        bench.judge.look();
      }
      expect(bench.judge.seen.turns).toBeGreaterThanOrEqual(10);
      await bench.finish();
      bench.judge.finish();
    });
  },
  LONG_MS,
);

proves(
  'prompt:server-death-blames-nobody',
  'an engine that is killed nine times under one worker costs no prompt its place',
  async () => {
    await onKillBench(PLAN, async (bench) => {
      const worker = bench.startWorker();
      for (let death = 0; death < 9; death++) {
        const from = bench.journalLines();
        await until(() => bench.journalLines() >= from + 24, worker);
        if (worker.hasExited()) break;
        await bench.killEngine(50);
      }
      const end = await bench.endOf(worker);
      expect(end.code, end.stdout + end.stderr).toBe(0);
      bench.judge.finish();
    });
  },
  LONG_MS,
);

test('the random kills are as many as promised', () => {
  console.log(`random kills: ${killed}`);
  expect(killed).toBeGreaterThanOrEqual(KILLS.random);
});
