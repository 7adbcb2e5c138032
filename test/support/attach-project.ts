/**
 * A project that attaches to a launch of the lookalike which somebody else started: its output goes where the test says, and no worker
 * has anything to do with its life.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { quoteShell } from '../../src/base/quote-shell.ts';
import { childrenOf, until } from './child-processes.ts';
import { makeProject, type Project } from './cli.ts';
import { freePort } from './launch-bench.ts';
import { QUICK_PHASES, STORY_MACHINE } from './launch-project.ts';
import { promptRow } from './lookalike-project.ts';
import { type JournalLine, readJournal } from './read-journal.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/programs/lookalike-engine.js', import.meta.url));

export interface ForeignRequest {
  readonly as?: string;
  readonly flags?: readonly string[];
  readonly scenario?: object;
  readonly port?: number;
  /** Where the shell puts its output: `>log 2>&1`, `2>&1 | cat >/dev/null`. */
  readonly output?: string;
}

export interface Foreign {
  readonly port: number;
  /** Of the engine itself. */
  pid(): number;
  isReady(): Promise<boolean>;
  kill(signal: NodeJS.Signals): void;
}

export interface AttachProject extends Project {
  readonly runFolder: string;
  readonly model: string;
  /** Command line of a lookalike that lives a real launch, for a shell or a container. */
  commandOf(request: ForeignRequest & { readonly port: number }): readonly string[];
  startForeign(request?: ForeignRequest): Promise<Foreign>;
  /** Rewrites the run file: one server, laid over; and the run's own keys. */
  rewrite(server: object, run?: object): void;
  journal(): JournalLine[];
}

/** Of the story's machine, with phases of a moment: a test of an attachment waits for no load. */
const SCENARIO = { machine: STORY_MACHINE, phases: QUICK_PHASES };

export function attachProject(prompts = 4): AttachProject {
  const project = makeProject();
  project.writeRows(
    'prompts.jsonl',
    Array.from({ length: prompts }, (_, at) => promptRow(at)),
  );
  const model = 'moonshotai/Kimi-K2.5';
  const journalPath = project.path('journal.jsonl');
  const commandOf: AttachProject['commandOf'] = ({ as = 'sglang@0.5.8', flags = ['--tp', '8'], scenario = {}, port }) => {
    const path = project.write(`scenario-${port}.json`, JSON.stringify({ ...SCENARIO, ...scenario }));
    const own = ['--as', as, '--scenario', path, '--clock-rate', '100', '--journal', journalPath];
    const named = as.startsWith('vllm') ? ['serve', model] : ['--model-path', model];
    return [process.execPath, PROGRAM, ...own, '--', ...named, ...flags, '--port', String(port)];
  };
  const rewrite: AttachProject['rewrite'] = (server, run = {}) => {
    project.writeRun('run.yaml', {
      ...{ run: 'r', model, servers: [{ engine: 'sglang', name: 's', gpu: 'RTX PRO 6000', ...server }] },
      ...{ sampling: { 'max-tokens': 64, seed: 7 }, 'in-flight': 4, partitions: [{ name: 'B1', from: 'prompts.jsonl' }] },
      ...run,
    });
  };
  return {
    ...{ ...project, runFolder: project.path('runs/r'), model, commandOf, rewrite, journal: () => readJournal(journalPath) },
    async startForeign(request = {}) {
      const port = request.port ?? (await freePort());
      const line = `${commandOf({ ...request, port })
        .map(quoteShell)
        .join(' ')} ${request.output ?? '>log 2>&1'}`;
      const child = spawn('sh', ['-c', line], { cwd: project.folder, stdio: 'ignore', detached: true });
      onTestFinished(() => endGroup(child));
      const foreign = foreignAt(child, port);
      await until(() => foreign.isReady(), 60_000);
      return foreign;
    },
  };
}

function foreignAt(child: ChildProcess, port: number): Foreign {
  const pid = () => [child.pid ?? 0, ...childrenOf(child.pid ?? 0)].find((one) => commandOf(one).includes('--as')) ?? 0;
  return {
    port,
    pid,
    kill: (signal) => void process.kill(pid(), signal),
    async isReady() {
      const reply = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined);
      return reply?.status === 200;
    },
  };
}

function commandOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

function endGroup({ pid = 0 }: ChildProcess): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // it has ended
  }
}
