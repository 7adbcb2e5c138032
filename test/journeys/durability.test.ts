/**
 * What a kill cannot show, because the page cache survives it: the order of fsyncs as the kernel saw them, and what a
 * power cut would have left. Also torn tails, written by hand.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { proves } from '../proves.ts';
import { type BenchPlan, type CrashBench, onBench, until } from '../support/crash-bench.ts';
import { type FileCall, killedAtSync, readTrace, traced, whyNoTrace } from '../support/file-trace.ts';
import { readLedger } from '../support/judge-ledger.ts';
import { cutPower, snapshot } from '../support/power-cut.ts';

const PLAN: BenchPlan = {
  partitions: [
    { name: 'A', single: 30, triple: 15, duplicates: 2, bad: 2 },
    { name: 'B', single: 10, triple: 5, duplicates: 0, bad: 0 },
  ],
  inFlight: 8,
};
/** A seal, and with it an event, after every few records. */
const SEAL_OFTEN = { AERIE_SEAL_BYTES: '2500' };

const noTrace = whyNoTrace();
if (noTrace !== undefined && process.env['AERIE_REQUIRE_ALL'] === '1')
  throw new Error(`the order of fsyncs must be tested: ${noTrace}`);

const traceFileOf = (bench: CrashBench): string => join(bench.folder, 'trace.txt');

/** The first call that holds and began after `after` had returned. */
function firstAfter(calls: readonly FileCall[], after: number, holds: (call: FileCall) => boolean): FileCall | undefined {
  return calls.find((call) => call.began > after && holds(call));
}

const isSync = (call: FileCall, path: string): boolean =>
  call.path === path && (call.name === 'fsync' || call.name === 'fdatasync');
const tells = (call: FileCall, path: string, text: string): boolean => call.path === path && call.data.includes(text);

/** Each record of a finished run: written, shard synced, in the ledger's log, that synced, told. Returns what is out of order. */
function outOfOrder(bench: CrashBench, calls: readonly FileCall[]): string[] {
  const wal = join(bench.runFolder, 'ledger.sqlite-wal');
  const log = join(bench.runFolder, 'logs', 'aerie.log');
  const rows = readLedger(bench.runFolder, 'copied');
  const wrong: string[] = [];
  for (const record of rows?.records ?? []) {
    const path = join(bench.runFolder, 'records', record.partition, `${String(record.shard).padStart(5, '0')}.jsonl`);
    const shard = rows?.shards.find(({ partition, number }) => partition === record.partition && number === record.shard);
    const written = calls.find((call) => tells(call, path, record.id));
    const synced = written && firstAfter(calls, written.returned, (call) => isSync(call, path));
    // The row holds the hash of the line in letters, so the first page of the log that has it is its commit.
    const entered = calls.find((call) => tells(call, wal, record.sha256));
    const committed = entered && firstAfter(calls, entered.returned, (call) => isSync(call, wal));
    const sealed = shard?.sealed === 1 ? calls.find((call) => tells(call, log, shard.sha256)) : undefined;
    const told = shard?.sealed === 1 ? sealed?.began : Number.POSITIVE_INFINITY;
    const steps = [written?.returned, synced?.began, synced?.returned, entered?.began, committed?.returned, told];
    const isOrdered = steps.every((step, at) => step !== undefined && (at === 0 || (steps[at - 1] ?? 0) <= step));
    if (!isOrdered) wrong.push(`${record.partition}/${record.id}: ${steps.join(' ')}`);
  }
  return wrong;
}

/** Each event of the log: its text was in the ledger's write-ahead log, and that synced, before it was told. */
function toldTooEarly(bench: CrashBench, calls: readonly FileCall[]): string[] {
  const wal = join(bench.runFolder, 'ledger.sqlite-wal');
  const log = join(bench.runFolder, 'logs', 'aerie.log');
  return calls
    .filter(({ path, data }) => path === log && data.includes('"kind":"shard.sealed"'))
    .filter((told) => {
      const { sha256 } = JSON.parse(told.data.toString('utf8')) as { sha256: string };
      const entered = calls.find((call) => tells(call, wal, sha256));
      const committed = entered && firstAfter(calls, entered.returned, (call) => isSync(call, wal));
      return committed === undefined || committed.returned > told.began;
    })
    .map(({ data }) => data.toString('utf8'));
}

if (noTrace !== undefined) test.skip(`the order of fsyncs (${noTrace})`, () => undefined);
else {
  proves(
    'record:durable-before-visible',
    'every record is synced before the ledger has it, and the ledger before it is told',
    () =>
      onBench(PLAN, async (bench) => {
        const end = await bench.endOf(bench.startWorker(SEAL_OFTEN, traced(traceFileOf(bench))));
        expect(end.code, end.stdout + end.stderr).toBe(0);
        bench.judge.finish();
        const calls = readTrace(traceFileOf(bench));
        expect(outOfOrder(bench, calls)).toEqual([]);
        expect(toldTooEarly(bench, calls)).toEqual([]);
        const sealed = readFileSync(join(bench.runFolder, 'logs', 'aerie.log'), 'utf8').match(/"kind":"shard.sealed"/g) ?? [];
        expect(sealed.length).toBeGreaterThan(5);
      }),
  );

  proves(
    'record:exactly-once',
    'killed in the middle of the ledger commit, after its pages are written and before they are synced, a run is whole',
    () =>
      onBench(PLAN, async (bench) => {
        const wal = join(bench.runFolder, 'ledger.sqlite-wal');
        for (const nth of [3, 9, 12, 15, 18]) {
          const end = await bench.endOf(bench.startWorker({}, killedAtSync(wal, nth)));
          expect(end.signal, end.stdout + end.stderr).toBe('SIGKILL');
          bench.judge.look();
        }
        await bench.finish();
        bench.judge.finish();
      }),
  );

  for (const [point, times] of [
    ['after-append', 4],
    ['after-sync', 3],
    ['after-commit', 6],
    ['after-seal-hash', 3],
  ] as const) {
    proves('record:durable-before-visible', `a power cut at ${point} loses nothing that was committed`, () =>
      onBench(PLAN, async (bench) => {
        for (let life = 0; life < 2; life++) {
          const before = snapshot(bench.folder, 'runs');
          const plant = { ...(point === 'after-seal-hash' ? SEAL_OFTEN : {}), AERIE_CRASH_AT: `${point}:${times}` };
          const worker = bench.startWorker(plant, traced(traceFileOf(bench)));
          expect((await bench.endOf(worker)).signal).toBe('SIGKILL');
          bench.judge.look();
          const { lostBytes } = cutPower(bench.folder, 'runs', before, readTrace(traceFileOf(bench)));
          if (point === 'after-append') expect(lostBytes).toBeGreaterThan(0);
          bench.judge.look();
        }
        await bench.finish();
        bench.judge.finish();
      }),
    );
  }
}

/** Some forty batches of enrolment: killed at the first, there is more to come. */
const LARGE: BenchPlan = { partitions: [{ name: 'A', single: 60, triple: 20, duplicates: 12_000, bad: 9_000 }], inFlight: 8 };
/** More than all that is appended later, which would otherwise write over a tail that nobody cut. */
const TORN = Buffer.concat([Buffer.alloc(2 ** 20, 0xff), Buffer.from('\n{"v":1,"id":"half a li')]);

proves(
  'record:torn-tail-is-cut',
  'garbage and half a line after the committed bytes are cut, and nothing before them',
  (): Promise<void> =>
    onBench(LARGE, async (bench) => {
      const tear = (file: string) => appendFileSync(join(bench.runFolder, file), TORN);
      const worker = bench.startWorker();
      expect(await until(() => bench.sizeOf('rejected/A.ndjson') > 0, worker)).toBe(true);
      expect(await bench.killWorker(worker)).toBe(true);
      tear('prompts/A.jsonl');
      tear('rejected/A.ndjson');
      bench.judge.look();

      expect(await bench.liveUntil('after-commit', 5)).toBe(true);
      bench.judge.look();
      expect(bench.judge.seen.records).toBeGreaterThan(0);
      tear('records/A/00000.jsonl');
      bench.judge.look();

      await bench.finish();
      bench.judge.finish();
      const log = readFileSync(join(bench.runFolder, 'logs', 'aerie.log'), 'utf8');
      expect(Number(/"kind":"shard.repaired".*"cutBytes":(\d+)/.exec(log)?.[1])).toBe(TORN.length);
    }),
);

proves(
  'record:torn-tail-is-cut',
  'bytes of a shard that the ledger never heard of are cut by the next start, even by one that appends nothing',
  (): Promise<void> =>
    onBench({ ...PLAN, patience: '500ms' }, async (bench) => {
      expect(await bench.liveUntil('after-append', 1)).toBe(true);
      expect(bench.judge.uncommittedBytes()).toBeGreaterThan(0);
      await Promise.all(bench.engines.map((engine) => engine.stop()));
      const end = await bench.endOf(bench.startWorker());
      expect(end.code, end.stdout + end.stderr).toBe(4); // nobody answers
      expect(bench.judge.uncommittedBytes()).toBe(0);
      bench.judge.look();
    }),
);
