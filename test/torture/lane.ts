/**
 * One run folder after another, each killed again and again until its run has ended by itself, and judged after each death.
 *
 *   life: planted (dies by itself in the middle of a commit or a seal) | in flight (killed from outside)
 *   a worker that lives on after its engine was killed is killed in flight next
 *
 * A complaint of the judge, a worker that ends with an error and one that hangs are findings: the folder is kept, and the
 * lane goes on with a new one.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type BenchPlan, CrashBench, until, type Worker, type WorkerEnd } from '../support/crash-bench.ts';
import { JudgeError } from '../support/judge.ts';
import { OpenRequests } from './open-requests.ts';
import { type Kind, POINTS } from './owed.ts';

export interface LaneOptions {
  readonly endpoints: number;
  readonly random: () => number;
  /** What is owed now; empty: enough. */
  readonly owed: () => readonly Kind[];
  readonly onKill: (kind: Kind) => void;
  readonly onRun: (run: FinishedRun) => void;
  readonly onFinding: (finding: { readonly folder: string; readonly complaints: readonly string[] }) => void;
}

export interface FinishedRun {
  readonly records: number;
  /** Processes that were killed: two where Aerie and its engine died together. */
  readonly processes: number;
}

/** Some 200 conversations: a run lives through twenty deaths and more, and a look at it takes milliseconds. */
const PLAN: BenchPlan = {
  partitions: [
    { name: 'A', single: 120, triple: 40, duplicates: 3, bad: 2 },
    { name: 'B', single: 20, triple: 20, duplicates: 0, bad: 0 },
  ],
  inFlight: 12,
  patience: '60s',
};
/** A shard is full after about three records, so that a seal is never far. */
const SEAL_BYTES = '2500';
/** A life takes seconds; this long, and it hangs. */
const HANGS_AFTER_MS = 180_000;

export async function runLane(options: LaneOptions): Promise<void> {
  while (options.owed().length > 0) {
    const bench = await CrashBench.open({ ...PLAN, engines: options.endpoints });
    try {
      await new Torment(bench, options).live();
      await bench.finish(); // one more finds nothing to do
      bench.judge.finish();
      options.onRun({ records: bench.judge.seen.records, processes: bench.kills });
      await bench.close();
    } catch (thrown) {
      await bench.close(true);
      const complaints = thrown instanceof JudgeError ? thrown.complaints : [String(thrown)];
      options.onFinding({ folder: bench.folder, complaints });
    }
  }
}

class Torment {
  readonly #bench: CrashBench;
  readonly #options: LaneOptions;
  readonly #requests: OpenRequests;
  /** Lives on after the death of its engine. */
  #survivor: Worker | undefined;

  constructor(bench: CrashBench, options: LaneOptions) {
    this.#bench = bench;
    this.#options = options;
    this.#requests = new OpenRequests(bench.journal);
  }

  /** Until the run has ended by itself or enough kills are made. */
  async live(): Promise<void> {
    for (;;) {
      const owed = this.#options.owed();
      if (owed.length === 0) break;
      const inFlight = owed.filter(({ phase }) => phase === 'in flight');
      // Only a fresh worker can be planted.
      const kind = this.#pick(this.#survivor === undefined || inFlight.length === 0 ? owed : inFlight);
      const isOver = kind.phase === 'in flight' ? await this.#killInFlight(kind) : await this.#dieAt(kind);
      if (isOver) return;
    }
    if (this.#survivor !== undefined) await this.#endWell(this.#survivor);
  }

  async #dieAt(kind: Kind): Promise<boolean> {
    if (this.#survivor !== undefined) {
      await this.#bench.killWorker(this.#survivor);
      this.#survivor = undefined;
      this.#bench.judge.look();
    }
    const worker = this.#bench.startWorker({
      AERIE_CRASH_AT: `${this.#pick(POINTS[kind.phase])}:${1 + this.#below(4)}`,
      ...(kind.phase === 'seal' ? { AERIE_SEAL_BYTES: SEAL_BYTES } : {}),
    });
    const end = await this.#endOf(worker);
    if (end.signal !== 'SIGKILL') return this.#isFinished(end);
    this.#bench.kills += 1;
    if (kind.who === 'both') await this.#killEngine();
    this.#options.onKill(kind);
    this.#bench.judge.look();
    return false;
  }

  async #killInFlight(kind: Kind): Promise<boolean> {
    const worker = this.#survivor ?? this.#bench.startWorker();
    this.#survivor = undefined;
    const which = this.#below(this.#options.endpoints);
    if (!(await this.#untilInFlight(worker, kind, which))) return this.#isFinished(await this.#endOf(worker));
    if (kind.who === 'engine') {
      await this.#killEngine(which, this.#below(150));
      this.#survivor = worker;
    } else {
      const engine = kind.who === 'both' ? this.#killEngine(which) : undefined;
      await Promise.all([this.#bench.killWorker(worker), engine]);
      this.#bench.judge.look();
    }
    this.#options.onKill(kind);
    return false;
  }

  /** After some lines of the journal and a moment more, with requests that the engine has and has not answered. */
  async #untilInFlight(worker: Worker, { who }: Kind, which: number): Promise<boolean> {
    this.#requests.look();
    const after = this.#requests.lines + 1 + this.#below(40);
    const alive = who === 'engine' ? [this.#bench.engines[which]] : this.#bench.engines;
    const pids = alive.map((engine) => engine?.pid ?? 0);
    const isInFlight = () => {
      this.#requests.look();
      return this.#requests.lines >= after && this.#requests.of(pids) > 0;
    };
    const reached = await this.#within(until(isInFlight, worker), worker);
    await delay(this.#below(20));
    return reached && (await this.#within(until(isInFlight, worker), worker)) && !worker.hasExited();
  }

  async #killEngine(which = this.#below(this.#options.endpoints), awayMs = 0): Promise<void> {
    await this.#bench.killEngine(awayMs, which);
  }

  async #endWell(worker: Worker): Promise<void> {
    this.#isFinished(await this.#endOf(worker));
  }

  async #endOf(worker: Worker): Promise<WorkerEnd> {
    return await this.#within(this.#bench.endOf(worker), worker);
  }

  /** A worker that was not killed ends well, or it is a finding. */
  #isFinished(end: WorkerEnd): true {
    if (end.code !== 0) throw new Error(`a worker ended with ${end.code ?? end.signal}: ${end.stdout}${end.stderr}`);
    return true;
  }

  async #within<T>(work: Promise<T>, worker: Worker): Promise<T> {
    const timer = setTimeout(() => worker.process.kill('SIGABRT'), HANGS_AFTER_MS);
    try {
      return await work;
    } finally {
      clearTimeout(timer);
    }
  }

  #below(n: number): number {
    return Math.floor(this.#options.random() * n);
  }

  #pick<T>(from: readonly T[]): T {
    const picked = from[this.#below(from.length)];
    if (picked === undefined) throw new Error('nothing to pick from');
    return picked;
  }
}
