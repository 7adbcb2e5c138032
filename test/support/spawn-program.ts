/**
 * Starts one of Aerie's programs as people's machines run it: the built file in `dist/`, its own process, a real port.
 *
 * Works for every program that knows `--port`, `--port-file` and `--lifeline` (the lookalike and the embedded engine). Promises:
 * it ends only what it started, by its process; a test runner that is killed leaves no orphan (the lifeline); and when the program
 * does not start, the error carries its stderr.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export interface SpawnRequest {
  /** Below `dist/programs/`, e.g. `lookalike-engine.js`. */
  readonly program: string;
  readonly args?: readonly string[];
  /** 0 = any free one. A fixed port is for a second life at the same address. */
  readonly port?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** false: the program outlives a closed stdin. */
  readonly lifeline?: boolean;
  /** How long until it listens; a model that is loaded first takes its time on two shared cores. */
  readonly readyWithinMs?: number;
}

export interface ProgramExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface RunningProgram {
  readonly baseUrl: string;
  readonly port: number;
  readonly pid: number;
  /** Resolves when the process has ended; never rejects. */
  readonly exited: Promise<ProgramExit>;
  /** All that it has written to stderr so far. */
  stderr(): string;
  kill(signal: NodeJS.Signals): void;
  /** What the program sees when the process that started it is killed. */
  closeStdin(): void;
  /** SIGTERM, then SIGKILL after `graceMs`; resolves when it has ended. Safe to call again. */
  stop(graceMs?: number): Promise<ProgramExit>;
}

const DIST = fileURLToPath(new URL('../../dist/programs/', import.meta.url));
const READY_WITHIN_MS = 60_000;
const LOOK_EVERY_MS = 10; // a start takes some 300 ms

export async function spawnProgram(request: SpawnRequest): Promise<RunningProgram> {
  const file = join(DIST, request.program);
  if (!existsSync(file)) throw new Error(`${file} is not built: npx tsc -p tsconfig.build.json`);
  const folder = mkdtempSync(join(tmpdir(), 'aerie-program-'));
  const portFile = join(folder, 'port');
  const lifeline = request.lifeline === false ? [] : ['--lifeline'];
  const args = [file, '--port', String(request.port ?? 0), '--port-file', portFile, ...lifeline, ...(request.args ?? [])];
  const child = spawn(process.execPath, args, { env: { ...process.env, ...request.env }, stdio: ['pipe', 'ignore', 'pipe'] });
  child.stdin.on('error', () => undefined); // EPIPE when it has died: `exited` tells it
  const written: string[] = [];
  child.stderr.setEncoding('utf8').on('data', (text: string) => void written.push(text));
  const stderr = (): string => written.join('');

  let ended: ProgramExit | undefined;
  const exited = once(child, 'close').then(([code, signal]): ProgramExit => {
    ended = { code: code as number | null, signal: signal as NodeJS.Signals | null };
    rmSync(folder, { recursive: true, force: true });
    return ended;
  });
  const stop = async (graceMs = 5_000): Promise<ProgramExit> => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
    return exited.finally(() => clearTimeout(timer));
  };

  const deadline = performance.now() + (request.readyWithinMs ?? READY_WITHIN_MS);
  while (ended === undefined && performance.now() < deadline && !existsSync(portFile)) await delay(LOOK_EVERY_MS);
  if (ended !== undefined || !existsSync(portFile)) {
    const { code, signal } = await stop();
    throw new Error(`${request.program} did not listen (exit ${code ?? signal}).\nIts stderr:\n${stderr()}`);
  }
  const port = Number(readFileSync(portFile, 'utf8').trim());
  return {
    baseUrl: `http://127.0.0.1:${port}`,
    port,
    pid: child.pid ?? 0, // it listens, so it has one
    exited,
    stderr,
    kill: (signal) => void child.kill(signal),
    closeStdin: () => void child.stdin.end(),
    stop,
  };
}
