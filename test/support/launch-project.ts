/**
 * A project whose run file launches SGLang: the command is the lookalike engine, the GPUs are lookalike GPUs, everything else
 * is real: processes, ports, signals, logs, the command line, and behind ssh the sshd. Figures are those of Kimi-K2.5 on eight
 * RTX PRO 6000.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { findKnownModel } from '../../src/capacity/known-models.ts';
import { aerie, type CliResult, makeProject, type Project, type StartedCli, startAerie } from './cli.ts';
import { type BoxRequest, type LaunchPlace, openPlace, type Where } from './launch-place.ts';
import { promptRow } from './lookalike-project.ts';
import { type JournalLine, readJournal } from './read-journal.ts';

const PROGRAM = fileURLToPath(new URL('../../dist/programs/lookalike-engine.js', import.meta.url));

/** F0, weights and what comes after the pool, so that 0.88 holds 159,277 tokens and leaves 5.47 GiB, as was seen. */
export const STORY_MACHINE = { gpu: 'RTX PRO 6000', freeBeforeLoadGiB: 94.0372, weightsGiB: 72.3287, graphsGiB: 3.81 } as const;
/** Without the hierarchical cache of the story: its 384 GB of host memory are asked of this machine, which has them not. */
export const STORY_FLAGS = { tp: 8, 'mem-fraction-static': 0.88, 'kv-cache-dtype': 'bf16' } as const;
/** Phases of seconds: a journey that is about something else does not wait for a load. */
export const QUICK_PHASES = Object.fromEntries(
  ['argument-parsing', 'distributed-init', 'weight-loading', 'kv-pool-allocation', 'cuda-graph-capture', 'warmup'].map(
    (phase) => [phase, { seconds: 2 }],
  ),
);

export interface LaunchRequest {
  /** Left out: here. */
  readonly where?: Where;
  /** Of the machine behind ssh. */
  readonly box?: BoxRequest;
  readonly prompts?: number;
  readonly version?: string;
  readonly engine?: 'sglang' | 'vllm';
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly scenario?: object;
  /** Of the lookalike and of Aerie alike. */
  readonly clockRate?: number;
  /** Laid over the run file, and over its server. */
  readonly run?: object;
  readonly server?: object;
  readonly gpus?: number;
  /** Of the environment of Aerie. */
  readonly secrets?: Readonly<Record<string, string>>;
}

export interface LaunchProject extends Omit<Project, 'aerie' | 'start'> {
  readonly runFolder: string;
  /** Of the server, on the loopback of its machine. */
  readonly port: number;
  /** Of Aerie. */
  readonly env: Readonly<Record<string, string>>;
  readonly place: LaunchPlace;
  /** In the project's environment; ends with `server stop` when the test does. */
  aerie(...args: string[]): Promise<CliResult>;
  start(...args: string[]): StartedCli;
  change(over: { readonly flags?: object; readonly run?: object; readonly server?: object; readonly scenario?: object }): void;
  journal(): JournalLine[];
  book(): {
    readonly launches: number;
    readonly tries: readonly object[];
    readonly current?: { readonly identity?: { readonly pid: number }; readonly flags: object; readonly logPath: string };
  };
}

export async function launchProject(request: LaunchRequest = {}): Promise<LaunchProject> {
  const project = makeProject();
  const { prompts = 12, engine = 'sglang', version = '0.5.8', clockRate = 20 } = request;
  const port = await quietPort();
  const journalPath = project.path('journal.jsonl');
  const place = await openPlace(project, request.where ?? 'here', request.gpus ?? 8, request.box);
  const cacheFolder = project.path('cache');
  const env = { ...place.env, AERIE_CLOCK_RATE: String(clockRate), AERIE_CACHE: cacheFolder, ...request.secrets };
  project.writeRows(
    'prompts.jsonl',
    Array.from({ length: prompts }, (_, at) => promptRow(at)),
  );
  const parts = {
    flags: request.flags ?? STORY_FLAGS,
    run: request.run ?? {},
    server: request.server ?? {},
    scenario: { machine: STORY_MACHINE, phases: QUICK_PHASES, ...request.scenario },
  };
  // A model that is here: one of the hub would have to be fetched, and 579 GiB are not free.
  const known = findKnownModel('moonshotai/Kimi-K2.5');
  project.write('models/moonshotai/Kimi-K2.5/config.json', JSON.stringify(known?.config));
  const write = () => {
    const scenario = project.write('scenario.json', JSON.stringify(parts.scenario));
    const command = `node ${PROGRAM} --as ${engine}@${version} --scenario ${scenario} --clock-rate ${clockRate} --journal ${journalPath} --`;
    project.writeRun('run.yaml', {
      run: 'r',
      model: project.path('models/moonshotai/Kimi-K2.5'),
      servers: [
        {
          ...{ engine, name: 's', port, gpu: 'RTX PRO 6000', 'engine-version': version, command, flags: parts.flags },
          ...place.server,
          ...parts.server,
        },
      ],
      sampling: { 'max-tokens': 64, seed: 7 },
      'in-flight': 8,
      partitions: [{ name: 'B1', from: 'prompts.jsonl' }],
      ...parts.run,
    });
  };
  write();
  const options = { cwd: project.folder, env };
  onTestFinished(async () => {
    await place.sshd?.cable.mend();
    await aerie(['server', 'stop', 'run.yaml'], options);
  });
  return {
    ...project,
    runFolder: project.path('runs/r'),
    ...{ port, env, place },
    aerie: (...args) => aerie(args, options),
    start: (...args) => startAerie(args, options),
    change(over) {
      Object.assign(parts, over);
      write();
    },
    journal: () => readJournal(journalPath),
    book: () => JSON.parse(readFileSync(project.path('runs/r/servers/s.json'), 'utf8')) as ReturnType<LaunchProject['book']>,
  };
}

/** Bound long after it is chosen, so below the ports that other tests' connections and listeners are given meanwhile. */
async function quietPort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true));
    });
    await new Promise((resolve) => server.close(resolve));
    if (isFree) return port;
  }
}
