/**
 * A server that nobody of Aerie has started: the lookalike engine as a launcher, its output in a file, as a person starts it by
 * `… >server.log 2>&1 &`. It ends with the test.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { childrenOf, until } from './child-processes.ts';
import type { Project } from './cli.ts';
import { freePort } from './launch-bench.ts';
import { QUICK_PHASES, STORY_MACHINE } from './launch-project.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/programs/lookalike-engine.js', import.meta.url));

export interface ProbedServerRequest {
  /** Also the name of its files in the project. */
  readonly name: string;
  readonly as?: string;
  readonly scenario?: object;
  readonly flags?: readonly string[];
  /** How many times faster than the world it lives until its start is over, and after. */
  readonly clockRate?: number;
  readonly env?: Readonly<Record<string, string>>;
}

export interface ProbedServer {
  readonly pid: number;
  readonly port: number;
  readonly url: string;
  readonly logPath: string;
  /** Its log holds the text. */
  until(text: string): Promise<void>;
  kill(signal: NodeJS.Signals): Promise<void>;
  fault(fault: object): Promise<void>;
}

export const SERVER_FLAGS = [
  ...['--model-path', 'moonshotai/Kimi-K2.5', '--tp', '8', '--mem-fraction-static', '0.88'],
  ...['--kv-cache-dtype', 'bf16', '--enable-metrics'],
];

export async function startProbedServer(project: Project, request: ProbedServerRequest): Promise<ProbedServer> {
  const { name, as = 'sglang@0.5.8', scenario = {}, flags = SERVER_FLAGS, clockRate = 20, env = {} } = request;
  const port = await freePort();
  const path = project.write(`${name}.json`, JSON.stringify({ machine: STORY_MACHINE, phases: QUICK_PHASES, ...scenario }));
  const logPath = project.path(`${name}.log`);
  const log = openSync(logPath, 'a');
  const own = ['--as', as, '--scenario', path, '--clock-rate', String(clockRate)];
  const child = spawn(process.execPath, [PROGRAM, ...own, '--', ...flags, '--port', String(port)], {
    ...{ env: { ...process.env, ...env }, stdio: ['ignore', log, log], cwd: project.folder },
  });
  closeSync(log);
  const ended = once(child, 'exit');
  const pid = child.pid ?? 0;
  let ranks: readonly number[] = [];
  const kill = async (signal: NodeJS.Signals) => {
    ranks = [...ranks, ...childrenOf(pid)];
    child.kill(signal);
    await ended;
    for (const rank of ranks) endIfThere(rank);
  };
  onTestFinished(() => kill('SIGKILL'));
  const url = `http://127.0.0.1:${port}`;
  return {
    ...{ pid, port, url, logPath, kill },
    until: (text) => until(() => readFileSync(logPath, 'utf8').includes(text), 60_000),
    async fault(fault) {
      const reply = await fetch(`${url}/_lookalike/fault`, { method: 'POST', body: JSON.stringify(fault) });
      if (!reply.ok) throw new Error(`${reply.status} ${await reply.text()}`);
    },
  };
}

function endIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it went with its parent
  }
}
