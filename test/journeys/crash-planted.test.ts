/**
 * Kills at planted points: where a record is appended and not synced, synced and not committed, committed and not told,
 * and in the middle of a seal. Requests are in flight at every one of them. After each life the judge looks.
 */
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { proves } from '../proves.ts';
import { type BenchPlan, KILLS, onBench, SCALE, until } from '../support/crash-bench.ts';

/** Fixed, so that a failure is the same failure tomorrow; the timing of the processes varies enough by itself. */
const SEED = 20_261;
const CASES = { seed: SEED, numRuns: SCALE, endOnFailure: true };
const LONG_MS = 120_000 * SCALE;
/** Deaths in one run before it may finish. */
const DEATHS = 7;
/** A shard is full after about three records, so that a seal is never far. */
const SEAL_OFTEN = { AERIE_SEAL_BYTES: '2500' };

const PLAN: BenchPlan = {
  partitions: [
    { name: 'A', single: 100, triple: 40, duplicates: 3, bad: 2 },
    { name: 'B', single: 30, triple: 10, duplicates: 0, bad: 0 },
  ],
  inFlight: 12,
};

/** Some forty batches of enrolment, most of their rows repetitions or no prompts, so that answering takes a second. */
const LARGE: BenchPlan = { partitions: [{ name: 'A', single: 60, triple: 20, duplicates: 12_000, bad: 9_000 }], inFlight: 12 };

const killed = new Map<string, number>();

function countKills(point: string, kills: number): void {
  killed.set(point, (killed.get(point) ?? 0) + kills);
}

/** `DEATHS` lives end at this point, each at its own n-th passing; then the run finishes. `afterDeath` looks at what is left. */
async function dieAt(
  point: string,
  env: Readonly<Record<string, string>>,
  afterDeath: (uncommitted: number) => void = () => undefined,
): Promise<void> {
  const deaths = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: DEATHS, maxLength: DEATHS });
  const property = fc.asyncProperty(deaths, async (times) => {
    await onBench(PLAN, async (bench) => {
      for (const n of times) {
        if (!(await bench.liveUntil(point, n, env))) break;
        afterDeath(bench.judge.uncommittedBytes());
        bench.judge.look();
      }
      await bench.finish(env);
      bench.judge.finish();
      expect(bench.goneClients(), 'no request was in flight at any death').toBeGreaterThan(0);
      countKills(point, bench.kills);
    });
  });
  await fc.assert(property, CASES);
}

const hasTail = (uncommitted: number): void => expect(uncommitted).toBeGreaterThan(0);
const hasNoTail = (uncommitted: number): void => expect(uncommitted).toBe(0);

proves(
  'record:torn-tail-is-cut',
  'killed between append and fsync, again and again, a run is whole',
  () => dieAt('after-append', {}, hasTail),
  LONG_MS,
);

proves(
  'record:exactly-once',
  'killed between fsync and the ledger commit, a record is neither lost nor doubled',
  () => dieAt('after-sync', {}, hasTail),
  LONG_MS,
);

proves(
  'resume:same-command',
  'killed right before the ledger commit, the same command goes on',
  () => dieAt('before-commit', {}),
  LONG_MS,
);

proves(
  'record:shown-is-kept',
  'killed between commit and event, what was committed is kept',
  () => dieAt('after-commit', {}, hasNoTail),
  LONG_MS,
);

proves(
  'record:exactly-once',
  'killed before a shard is hashed for its seal, nothing is lost or doubled',
  () => dieAt('before-seal', SEAL_OFTEN, hasNoTail),
  LONG_MS,
);

proves(
  'record:exactly-once',
  'killed between the hash of a shard and its seal in the ledger, nothing is lost or doubled',
  () => dieAt('after-seal-hash', SEAL_OFTEN, hasNoTail),
  LONG_MS,
);

async function dieWhileEnrolling(): Promise<void> {
  const delays = fc.array(fc.integer({ min: 0, max: 12 }), { minLength: 7, maxLength: 7 });
  const property = fc.asyncProperty(delays, async (delaysMs) => {
    await onBench(LARGE, async (bench) => {
      const written = () => bench.sizeOf('prompts/A.jsonl') + bench.sizeOf('rejected/A.ndjson');
      for (const delayMs of delaysMs) {
        const before = written();
        const worker = bench.startWorker();
        await until(() => written() > before, worker);
        await delay(delayMs);
        await bench.killWorker(worker);
        bench.judge.look();
      }
      await bench.finish();
      bench.judge.finish();
      countKills('enrolment', bench.kills);
    });
  });
  await fc.assert(property, CASES);
}

proves(
  'resume:same-command',
  'killed again and again while a large source streams, every row is read once',
  dieWhileEnrolling,
  LONG_MS,
);

test('the planted kills are as many as promised', () => {
  const whole = [...killed.values()].reduce((sum, kills) => sum + kills, 0);
  console.log(`planted kills: ${whole} (${[...killed].map(([point, kills]) => `${point} ${kills}`).join(', ')})`);
  expect(killed.get('enrolment') ?? 0).toBeGreaterThanOrEqual(KILLS.enrolment);
  expect(whole).toBeGreaterThanOrEqual(KILLS.planted + KILLS.enrolment);
  expect(KILLS.random + KILLS.planted + KILLS.enrolment).toBeGreaterThanOrEqual(60);
});
