/**
 * A server of the run file as the lookalike plays it: the same flags, on GPUs that do not exist, with the memory facts that the
 * arithmetic or earlier launches know. Everything it needs lies in one folder.
 */
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AerieError } from '../../base/errors.ts';
import { quoteShell } from '../../base/quote-shell.ts';
import type { Gpu } from '../../capacity/gpu.ts';
import { findGpu } from '../../capacity/gpus.ts';
import { findKnownModel } from '../../capacity/known-models.ts';
import { type Plan, planLaunch } from '../../capacity/plan-launch.ts';
import { runCommand } from '../../host/commands.ts';
import type { Host } from '../../host/host.ts';
import type { Machine } from '../../machine/machine.ts';
import { parseGiven } from '../../server/recovery/changes.ts';
import type { RunSpec, ServerSpec } from '../../spec/run.ts';
import type { Lengths } from '../../twin/lengths.ts';
import type { OperationContext } from '../context.ts';
import { obtainModelFiles } from '../plan/model-files.ts';
import { obtainShape } from '../plan/obtain-shape.ts';
import { recallLaunches } from '../plan/remembered.ts';
import { findRareFlags } from './rare-flags.ts';
import { rehearsalMachine } from './rehearsal-machine.ts';

export interface LookalikeServer {
  /** Takes the place of the run file's own. */
  readonly spec: ServerSpec;
  readonly machine: Machine;
  readonly gpus: number;
  readonly gpu: Gpu;
  readonly version: string;
  /** What was taken for granted, one sentence each. */
  readonly assumed: readonly string[];
}

export interface LookalikeRequest {
  readonly run: RunSpec;
  readonly server: ServerSpec;
  readonly folder: string;
  readonly lengths: Lengths;
  readonly rate: number;
  /** Laid over what is made here: `readScenario`. */
  readonly scenario: ScenarioOver;
}

/** A scenario of the lookalike as a person wrote it; the lookalike itself checks it. */
export type ScenarioOver = Readonly<Record<string, unknown>> & { readonly machine?: Readonly<Record<string, unknown>> };

const ENGINE = fileURLToPath(new URL('../../programs/lookalike-engine.js', import.meta.url));
const NVIDIA_SMI = fileURLToPath(new URL('../../programs/lookalike-nvidia-smi.js', import.meta.url));
/** The card of the lookalike's own default scenario. */
const ASSUMED_GPU = 'RTX PRO 6000';
/** What a driver keeps of a card that nobody uses. */
const DRIVER_MIB = 4;
/** A program of its own, started on a busy machine. */
const HELP_MS = 60_000;
/** Host memory of the lookalike where nobody says it: more than any hierarchical cache asks for. */
const PLENTY_GIB = 2 ** 20;
/** Where a server listens and where its ranks meet: a real one may be there. */
const PLACES = /^-*(host|port|dist[-_]init[-_]addr|nccl[-_]port|master[-_]addr|master[-_]port)$/;

export async function prepareLookalike(request: LookalikeRequest, context: OperationContext): Promise<LookalikeServer> {
  const { run, server, folder, rate, scenario } = request;
  const { known, standard, recalled } = await planReal(request, context);
  const { launch, gpu } = known;
  const gpus = launch.tp * launch.pp * (launch.isDpAttention ? 1 : launch.dp);
  await mkdir(folder, { recursive: true });
  const env = await installCards(folder, gpu, firstGpuOf(server) + gpus, context.host);
  const given = scenario.machine ?? {};
  const machine = {
    hostMemoryGiB: PLENTY_GIB,
    ...(await standInFor(run.model, folder, context)),
    ...factsOf(standard),
    ...given,
    gpu: gpu.name,
  };
  const scenarioPath = join(folder, 'scenario.json');
  await writeFile(scenarioPath, JSON.stringify({ answerTokens: answerTokensOf(request.lengths), ...scenario, machine }));
  const words = ['--as', `${server.engine}@${launch.version}`];
  const help = await runCommand({
    ...{ file: process.execPath, args: [ENGINE, ...words, '--', '--help'], env: context.host.env, timeoutMs: HELP_MS },
  });
  const rare = help.kind === 'ended' ? findRareFlags(server, help.stdout) : [];
  const { apiKeyName: _, ...open } = server;
  const spec: ServerSpec = {
    ...open,
    gpu: gpu.name,
    engineVersion: launch.version,
    flags: Object.fromEntries(Object.entries(server.flags).filter(([name]) => !PLACES.test(name) && !rare.includes(name))),
    ...{ port: 0, setup: [], env: {}, workdir: folder, log: '' },
    command: `${quoteShell(process.execPath)} ${quoteShell(ENGINE)} ${words.join(' ')} --scenario ${quoteShell(scenarioPath)} --clock-rate ${rate} --`,
  };
  const hostMemoryGiB = typeof machine.hostMemoryGiB === 'number' ? machine.hostMemoryGiB : PLENTY_GIB;
  return {
    ...{ spec, gpus, gpu, version: launch.version },
    machine: rehearsalMachine(context.host, { env, hostMemoryGiB }),
    assumed: [
      ...rare.map((flag) => `${server.name}: without ${flag}, which the lookalike does not know`),
      ...assumedOf(request, known, recalled, given),
    ],
  };
}

interface RealPlan {
  readonly known: Plan;
  /** The same with the engine's own graph sizes, which a scenario's `graphsGiB` is about. */
  readonly standard: Plan;
  /** Launches that Aerie remembers of this model, version and GPU. */
  readonly recalled: number;
}

async function planReal({ run, server }: LookalikeRequest, context: OperationContext): Promise<RealPlan> {
  const engine = server.engine === 'vllm' ? 'vllm' : 'sglang';
  const shape = await obtainShape(run.model, context);
  const gpu = findGpu(server.gpu === '' ? ASSUMED_GPU : server.gpu);
  const flags = parseGiven(engine, server.flags);
  const bare = { engine, version: server.engineVersion, shape, gpu, flags } as const;
  const { version } = planLaunch(bare).launch;
  const observations = await recallLaunches({ model: run.model, engine, version, gpu: gpu.name }, context.host.env);
  const plain = Object.fromEntries(Object.entries(flags.values).filter(([name]) => !/graph|max-running-requests/.test(name)));
  return {
    known: planLaunch({ ...bare, observations }),
    standard: planLaunch({ ...bare, observations, flags: { ...flags, values: plain } }),
    recalled: observations.length,
  };
}

function factsOf({ launch, prediction }: Plan): Readonly<Record<string, number>> {
  const { weightsGiBPerGpu: weightsGiB, freeBeforeLoadGiB, graphsGiB } = prediction;
  return launch.engine === 'sglang' ? { weightsGiB, freeBeforeLoadGiB, graphsGiB } : { weightsGiB, graphsGiB };
}

/** A model of the table is known to the lookalike by its name; of any other it needs the config. */
async function standInFor(
  model: string,
  folder: string,
  { host, drain, onNote }: OperationContext,
): Promise<{ readonly model?: string; readonly kvCacheAlgorithm?: string }> {
  if (findKnownModel(model) !== undefined) return { model };
  const { config } = await obtainModelFiles(model, { env: host.env, signal: drain }, onNote);
  const standIn = join(folder, 'model');
  await mkdir(standIn);
  await writeFile(join(standIn, 'config.json'), JSON.stringify(config));
  return { model: standIn };
}

/** Cards, and a program `nvidia-smi` that knows of them alone. */
async function installCards(folder: string, gpu: Gpu, count: number, { env }: Host): Promise<Record<string, string>> {
  const [state, bin] = [join(folder, 'gpus'), join(folder, 'bin')];
  for (const made of [state, bin]) await mkdir(made);
  const cards = Array.from({ length: count }, (_, index) => ({
    uuid: `GPU-00000000-0000-0000-0000-${String(index).padStart(12, '0')}`,
    name: gpu.name,
    ...{ totalMiB: Math.round(gpu.memoryMiB), baseMiB: DRIVER_MIB },
  }));
  await writeFile(join(state, 'gpus.json'), JSON.stringify(cards));
  const shim = join(bin, 'nvidia-smi');
  await writeFile(shim, `#!/bin/sh\nexec ${quoteShell(process.execPath)} ${quoteShell(NVIDIA_SMI)} "$@"\n`);
  await chmod(shim, 0o755);
  return { PATH: `${bin}${delimiter}${env['PATH'] ?? ''}`, AERIE_LOOKALIKE_GPUS: state };
}

function firstGpuOf({ flags }: ServerSpec): number {
  const first = Number(flags['base-gpu-id'] ?? 0);
  return Number.isInteger(first) && first > 0 ? first : 0;
}

function answerTokensOf(lengths: Lengths): object {
  switch (lengths.kind) {
    case 'fixed':
      return lengths;
    case 'uniform':
      return { kind: 'uniform', min: lengths.least, max: lengths.most };
    case 'lognormal': {
      const max = Number.isFinite(lengths.most) ? { max: Math.round(lengths.most) } : {};
      return { kind: 'lognormal', mean: Math.round(lengths.mean), sigma: lengths.sigma, ...max };
    }
    case 'empirical':
      throw new Error('nobody writes lengths one by one');
  }
}

function assumedOf(
  { server }: LookalikeRequest,
  { launch }: Plan,
  recalled: number,
  given: Readonly<Record<string, unknown>>,
): string[] {
  const of = `${server.name}: `;
  const facts = ['weightsGiB', 'freeBeforeLoadGiB', 'graphsGiB'].filter((key) => given[key] !== undefined);
  const memory =
    facts.length > 0
      ? `memory as the scenario has it (${facts.join(', ')})`
      : recalled > 0
        ? 'memory as real launches that Aerie remembers have measured it'
        : 'memory as the arithmetic estimates it, so this rehearsal cannot surprise aerie plan: one real launch would tell';
  return [
    ...(server.gpu === '' ? [`${of}the GPU: ${ASSUMED_GPU} (say which with gpu: in the run file)`] : []),
    ...(launch.isVersionAssumed ? [`${of}the version: ${launch.version} (say which with engine-version: in the run file)`] : []),
    `${of}${memory}`,
  ];
}

/** '' = none. Throws `usage.flag`. */
export async function readScenarioOver(path: string): Promise<ScenarioOver> {
  if (path === '') return {};
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'));
    if (isMapping(value) && (value['machine'] === undefined || isMapping(value['machine']))) return value as ScenarioOver;
    throw new Error('it is no mapping of keys');
  } catch (thrown) {
    throw new AerieError(
      'usage.flag',
      `The scenario ${path} cannot be read: ${thrown instanceof Error ? thrown.message : String(thrown)}.`,
      {
        remedy: 'Give --scenario a JSON file; docs/lookalike.md shows one. Nothing was started.',
      },
    );
  }
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
