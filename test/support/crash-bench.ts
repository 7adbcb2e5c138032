/**
 * A run, a lookalike engine and a judge, for tests that kill. Real processes, real files, real SIGKILL.
 *
 * Both can die and be started again: the engine on the same port with the same journal, Aerie with the same command.
 * Every kill is counted; `KILLS` is what each test file owes.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Judge } from './judge.ts';
import type { ExpectedPartition, Said } from './judge-witness.ts';
import { readJournal } from './read-journal.ts';
import { type ProgramExit, type RunningProgram, spawnProgram } from './spawn-program.ts';

/** The fewest kills of Aerie or of the engine that each file makes; each file holds itself to its share. */
export const KILLS = { random: 36, planted: 42, enrolment: 6 } as const;

/** More of everything for a long campaign: AERIE_CRASH_SCALE=10 makes ten times as many cases of each property. */
export const SCALE = Math.max(1, Number(process.env['AERIE_CRASH_SCALE'] ?? 1) || 1);

/** Another build of the program, to see that the judge notices a broken one. */
const MAIN = process.env['AERIE_TEST_MAIN'] ?? fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export interface PartitionPlan {
  readonly name: string;
  readonly single: number;
  /** Conversations of three questions. */
  readonly triple: number;
  readonly duplicates: number;
  readonly bad: number;
}

export interface BenchPlan {
  readonly partitions: readonly PartitionPlan[];
  readonly inFlight?: number;
  /** Endpoints, 1 unless told; all write one journal. */
  readonly engines?: number;
  readonly patience?: string;
  readonly latency?: { readonly kind: 'uniform'; readonly minMs: number; readonly maxMs: number };
  readonly faults?: readonly object[];
  /** Where the run folder is to be; by default in a folder of its own. */
  readonly folder?: string;
}

export interface Worker {
  readonly process: ChildProcess;
  readonly pid: number;
  readonly exited: Promise<ProgramExit>;
  readonly hasExited: () => boolean;
  readonly stdout: () => string;
  readonly stderr: () => string;
}

export interface WorkerEnd extends ProgramExit {
  readonly stdout: string;
  readonly stderr: string;
}

export class CrashBench {
  readonly folder: string;
  readonly runFile: string;
  readonly runFolder: string;
  readonly journal: string;
  readonly judge: Judge;
  readonly engines: RunningProgram[];
  kills = 0;
  readonly #workers = new Set<Worker>();

  private constructor(at: { folder: string; runFolder: string; judge: Judge; engines: RunningProgram[] }) {
    this.folder = at.folder;
    this.runFile = join(at.folder, 'run.yaml');
    this.runFolder = at.runFolder;
    this.journal = join(at.folder, 'journal.jsonl');
    this.judge = at.judge;
    this.engines = at.engines;
  }

  static async open(plan: BenchPlan): Promise<CrashBench> {
    const folder = plan.folder ?? mkdtempSync(join(tmpdir(), 'aerie-crash-'));
    const runFolder = join(folder, 'runs', 'crash');
    const partitions = plan.partitions.map((partition) => writeSource(folder, partition));
    const scenario = {
      latency: plan.latency ?? { kind: 'uniform', minMs: 20, maxMs: 80 },
      answerTokens: { kind: 'uniform', min: 4, max: 60 },
      faults: plan.faults ?? [],
    };
    writeFileSync(join(folder, 'scenario.json'), JSON.stringify(scenario));
    const engines = await Promise.all(Array.from({ length: plan.engines ?? 1 }, () => startEngine(folder, 0)));
    const ports = engines.map(({ port }) => port);
    writeFileSync(join(folder, 'run.yaml'), renderRunFile(plan, ports));
    return new CrashBench({
      folder,
      runFolder,
      engines,
      judge: new Judge({ runFolder, journal: join(folder, 'journal.jsonl'), partitions }),
    });
  }

  /** The same command each time. `env` plants crashes. */
  startWorker(env: Readonly<Record<string, string>> = {}, prefix: readonly string[] = []): Worker {
    const [program = process.execPath, ...args] = [...prefix, process.execPath, MAIN, 'run', this.runFile, '--json'];
    const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
    const said = { stdout: [] as string[], stderr: [] as string[] };
    child.stdout.setEncoding('utf8').on('data', (text: string) => void said.stdout.push(text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => void said.stderr.push(text));
    let ended = false;
    const exited = once(child, 'close').then(([code, signal]): ProgramExit => {
      ended = true;
      return { code: code as number | null, signal: signal as NodeJS.Signals | null };
    });
    const worker: Worker = {
      process: child,
      pid: child.pid ?? 0,
      exited,
      hasExited: () => ended,
      stdout: () => said.stdout.join(''),
      stderr: () => said.stderr.join(''),
    };
    this.#workers.add(worker);
    void exited.then(() => this.#workers.delete(worker));
    return worker;
  }

  async endOf(worker: Worker): Promise<WorkerEnd> {
    const exit = await worker.exited;
    return { ...exit, stdout: worker.stdout(), stderr: worker.stderr() };
  }

  /** A life that is killed at a planted point. true: it was; false: it ended by itself before. */
  async liveUntil(point: string, times: number, env: Readonly<Record<string, string>> = {}): Promise<boolean> {
    const end = await this.endOf(this.startWorker({ ...env, AERIE_CRASH_AT: `${point}:${times}` }));
    if (end.signal === 'SIGKILL') {
      this.kills += 1;
      return true;
    }
    if (end.code !== 0) throw new Error(`the worker ended with ${end.code}: ${end.stdout}${end.stderr}`);
    return false;
  }

  /** One more life, to the end of the run. */
  async finish(env: Readonly<Record<string, string>> = {}): Promise<WorkerEnd> {
    const end = await this.endOf(this.startWorker(env));
    if (end.code !== 0) throw new Error(`the run did not finish (exit ${end.code ?? end.signal}): ${end.stdout}${end.stderr}`);
    return end;
  }

  /** false: it had ended before. */
  async killWorker(worker: Worker): Promise<boolean> {
    if (!worker.hasExited()) worker.process.kill('SIGKILL');
    const { signal } = await worker.exited;
    if (signal === 'SIGKILL') this.kills += 1;
    return signal === 'SIGKILL';
  }

  /** Kills an engine and starts it again on its port after `awayMs`. */
  async killEngine(awayMs = 0, which = 0): Promise<void> {
    const engine = this.engines[which];
    if (engine === undefined) throw new Error(`there is no engine ${which}`);
    engine.kill('SIGKILL');
    await engine.exited;
    this.kills += 1;
    await delay(awayMs);
    this.engines[which] = await startEngine(this.folder, engine.port);
  }

  /** Bytes of a file of the run folder, 0 where there is none. */
  sizeOf(file: string): number {
    return statSync(join(this.runFolder, file), { throwIfNoEntry: false })?.size ?? 0;
  }

  /** Requests whose asker went away before the answer: in flight when a worker was killed. */
  goneClients(): number {
    return readJournal(this.journal).filter((line) => line.event === 'aborted' && line.because === 'client-gone').length;
  }

  journalLines(): number {
    return existsSync(this.journal) ? readFileSync(this.journal, 'latin1').split('\n').length - 1 : 0;
  }

  /** `keep`: the folder stays for a look. */
  async close(keep = process.env['AERIE_KEEP_RUN'] === '1'): Promise<void> {
    for (const worker of this.#workers) worker.process.kill('SIGKILL');
    await Promise.all([...this.#workers].map(({ exited }) => exited));
    await Promise.all(this.engines.map((engine) => engine.stop()));
    if (!keep) rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Opens a bench, and closes it whatever happens. */
export async function onBench(plan: BenchPlan, body: (bench: CrashBench) => Promise<void>): Promise<void> {
  const bench = await CrashBench.open(plan);
  try {
    await body(bench);
  } finally {
    await bench.close();
  }
}

/** Waits until it holds or the worker has ended; true: it holds. Every 2 ms: what is waited for passes within tens. */
export async function until(holds: () => boolean, worker: Worker): Promise<boolean> {
  while (!worker.hasExited()) {
    if (holds()) return true;
    await delay(2);
  }
  return holds();
}

async function startEngine(folder: string, port: number): Promise<RunningProgram> {
  const args = ['--scenario', join(folder, 'scenario.json'), '--journal', join(folder, 'journal.jsonl')];
  return await spawnProgram({ program: 'lookalike-engine.js', port, args });
}

function renderRunFile(plan: BenchPlan, ports: readonly number[]): string {
  const servers = ports.map((port) => `  - { engine: vllm, attach: "http://127.0.0.1:${port}" }`);
  const partitions = plan.partitions.map(({ name }) => `  - { name: ${name}, from: ${name}.jsonl }`);
  return `run: crash
model: lookalike
in-flight: ${plan.inFlight ?? 8}
patience: ${plan.patience ?? '20s'}
sampling: { max-tokens: 50, seed: 11 }
servers:
${servers.join('\n')}
partitions:
${partitions.join('\n')}
`;
}

/** Writes the source and says what a reader must make of it. Every ninth row or so is a repetition or no prompt at all. */
function writeSource(folder: string, plan: PartitionPlan): ExpectedPartition {
  const { name, single, triple, duplicates, bad } = plan;
  const prompts: Said[][] = [];
  for (let at = 0; at < single + triple; at++) {
    const isTriple = Math.floor(((at + 1) * triple) / (single + triple)) > Math.floor((at * triple) / (single + triple));
    const questions = isTriple ? ['what is', 'and then', 'why not'] : ['what is'];
    prompts.push(questions.map((text) => ({ role: 'user', content: `${text} ${name} ${at} – ‹é›` })));
  }
  const rows = prompts.map((said) => JSON.stringify({ turns: said.map(({ content }) => content) }));
  const first = [...rows];
  const badLines: number[] = [];
  for (let at = 0; at < duplicates; at++) rows.splice((at * 7) % (rows.length + 1), 0, first[(at * 5) % first.length] ?? '');
  const whole = rows.length + bad;
  for (let at = 0; at < bad; at++) rows.splice(Math.floor(((at + 0.5) * whole) / bad), 0, BAD[at % BAD.length] ?? '');
  for (const [at, row] of rows.entries()) if (BAD.includes(row)) badLines.push(at + 1);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.jsonl`), rows.map((row) => `${row}\n`).join(''));
  return { name, prompts, duplicates, badLines };
}

const BAD = ['{"turns": [', '{"prompt": ""}', '[1, 2]', '{"messages": [{"role": "tool", "content": "x"}]}'];
