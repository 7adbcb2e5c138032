/**
 * One launch of the lookalike as a real launcher for one test: its log, its port and its processes. All ends with the test, what the
 * scenario leaves behind too.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { until } from './lookalike-bench.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/programs/lookalike-engine.js', import.meta.url));

/** Eight RTX PRO 6000 with Kimi-K2.5: facts that give the printed pools to the token. */
export const STORY = {
  machine: {
    freeBeforeLoadGiB: 94.0372,
    weightsGiB: 72.3287,
    graphsGiB: 3.81,
    fragmentsGiB: { '0.9': 0.07, '0.93': -0.05 },
  },
};
export const KIMI = ['--model-path', 'moonshotai/Kimi-K2.5', '--tp', '8'];

export interface LaunchRequest {
  readonly as?: string;
  readonly scenario?: object;
  readonly flags: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Minutes of a load in a second of a test. */
  readonly clockRate?: number;
  readonly port?: number;
}

export interface Launch {
  readonly pid: number;
  readonly port: number;
  readonly journal: string;
  /** What it has written so far, stdout and stderr as one. */
  log(): string;
  until(text: string): Promise<void>;
  health(): Promise<'refused' | { status: number; body: string }>;
  kill(signal: NodeJS.Signals): void;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  /** Command lines of its children by pid, as /proc has them. */
  ranks(): readonly { readonly pid: number; readonly command: string }[];
}

export async function startLaunch(request: LaunchRequest): Promise<Launch> {
  const { as = 'sglang@0.5.8', scenario = {}, flags, env = {}, clockRate = 600 } = request;
  const folder = mkdtempSync(join(tmpdir(), 'aerie-launch-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const scenarioPath = join(folder, 'scenario.json');
  writeFileSync(scenarioPath, JSON.stringify(scenario));
  const port = request.port ?? (await freePort());
  const journal = join(folder, 'journal');
  const own = ['--as', as, '--scenario', scenarioPath, '--clock-rate', String(clockRate), '--journal', journal];
  const logPath = join(folder, 'log');
  appendFileSync(logPath, '');
  const child = spawn(process.execPath, [PROGRAM, ...own, '--lifeline', '--', ...flags, '--port', String(port)], {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.on('error', () => undefined);
  const pieces: string[] = [];
  const written = () => pieces.join('');
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => void pieces.push(text));
  const exited = once(child, 'close').then(([code, signal]) => ({
    code: code as number | null,
    signal: signal as NodeJS.Signals | null,
  }));
  let left: readonly { pid: number }[] = [];
  onTestFinished(async () => {
    left = [...left, ...childrenOf(child)];
    child.kill('SIGKILL');
    await exited;
    for (const { pid } of left) killIfThere(pid);
  });
  return {
    pid: child.pid ?? 0,
    port,
    journal,
    log: written,
    async until(text) {
      await Promise.race([until(() => written().includes(text) || child.exitCode !== null || child.signalCode !== null), exited]);
      if (!written().includes(text)) throw new Error(`it ended without "${text}":\n${written().slice(-4000)}`);
    },
    health: () => askHealth(port),
    kill(signal) {
      left = [...left, ...childrenOf(child)]; // what it leaves behind is nobody's child any more
      child.kill(signal);
    },
    exited,
    ranks: () => childrenOf(child),
  };
}

async function askHealth(port: number): Promise<'refused' | { status: number; body: string }> {
  try {
    const reply = await fetch(`http://127.0.0.1:${port}/health`);
    return { status: reply.status, body: await reply.text() };
  } catch {
    return 'refused';
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

function childrenOf({ pid }: ChildProcess): { pid: number; command: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
        const parent = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]);
        if (parent !== pid) return [];
        const command = readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
        return [{ pid: Number(name), command }];
      } catch {
        return []; // it has ended between two looks
      }
    });
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it went with its parent
  }
}
